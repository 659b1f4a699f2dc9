/**
 * Full exports to each kind of store: from the trigger until the status is DONE, compared with the movements
 * export of the same service and the floor. Each store has its own service process, because all processes on
 * one database claim exports from one queue.
 *
 * For an hour, the same trigger returns the same export. So before each one, and outside the measurement, the
 * bench deletes the row of the last one as the owner of the database, and its file: no part of the service is
 * switched off, and no disk fills up.
 */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { forgetExports } from '../../packages/sample/src/demo-folder.sql.ts'
import { openStore } from '../../src/store/open-store.ts'
import type { StoreSettings } from '../../src/store/store.ts'
import { defaultTiming } from '../../src/timing.ts'
import type { Dataset } from '../dataset.ts'
import { say } from '../own-process.ts'
import { runRounds, type Way } from '../rounds.ts'
import type { Row, Transfer } from '../rows.ts'
import { type ServiceProcess, startServiceProcess } from '../service-process.ts'
import { minioInstalled, startMinio } from './minio.ts'
import { checkRounds, checkSameContent } from './same-content.ts'
import { waysOfService } from './ways.ts'

interface Job {
  id: string
  status: 'INIT' | 'DONE' | 'FAILED'
  size?: number
  rows?: number
  /** Of the content, before compression, as `sha256`. */
  contentSize?: number
  sha256?: string
  reason?: string
  url?: string
}

/** The maximum delay in noticing the end; polling more often would add to what is measured. */
const pollMs = 25

export interface FileToMake {
  /** Of the way: `full export, JSON`. */
  name: string
  /** Of its trigger. */
  parameters: string
  /**
   * What is the same in each round. A JSON file has the id of its export and the time in its head, a TRA file the
   * time, so only their lengths are; of Parquet, whose encoder is not ours, the number of rows.
   */
  repeats: 'sha256' | 'contentSize' | 'rows'
}

const jsonFile = { name: 'full export, JSON', parameters: 'format=JSON', repeats: 'contentSize' } as const

/** Of the whole folder, but for the FEC, which is of its last exercice: all but one in a hundred movements. */
export function everyFile({ exerciceId }: Dataset['year']): FileToMake[] {
  return [
    jsonFile,
    { name: 'full export, JSON, zstd', parameters: 'format=JSON&compression=zstd', repeats: 'contentSize' },
    { name: 'full export, TRA', parameters: 'format=TRA', repeats: 'contentSize' },
    { name: 'full export, TRA, zstd', parameters: 'format=TRA&compression=zstd', repeats: 'contentSize' },
    { name: 'full export, FEC', parameters: `format=FEC&idExercice=${exerciceId}`, repeats: 'sha256' },
    { name: 'full export, CSV', parameters: 'format=CSV', repeats: 'sha256' },
    { name: 'full export, CSV, zstd', parameters: 'format=CSV&compression=zstd', repeats: 'sha256' },
    { name: 'full export, Parquet', parameters: 'format=PARQUET', repeats: 'rows' },
  ]
}

/**
 * @param stack stops what an interruption leaves
 * @returns the floor, the movements export and the full exports to a folder, which took turns
 */
export async function measureFilesInFolder(
  dataset: Dataset,
  toMake: FileToMake[],
  floor: Way,
  rounds: number,
  stack: AsyncDisposableStack,
): Promise<Row[]> {
  const folder = { kind: 'filesystem', folder: dataset.filesFolder, publicUrl: '', signingKeys: [] } as const
  return measureFullExports(dataset, toMake, floor, rounds, { files: folder, settings: {} }, stack)
}

/** As `measureFilesInFolder`, but of the JSON file to MinIO; undefined if it is not installed. */
export async function measureFileInMinio(
  dataset: Dataset,
  floor: Way,
  rounds: number,
  stack: AsyncDisposableStack,
): Promise<Row[] | undefined> {
  if (!minioInstalled) {
    say('full export to MinIO: left out, as .cache/bin/minio is not there; .ci/run builds it')
    return undefined
  }
  const { files, settings, stop } = await startMinio(stack)
  const store = { files, settings: { ...settings, MASTER_KEY: dataset.masterKey } }
  const rows = await measureFullExports(dataset, [jsonFile], floor, rounds, store, stack)
  await stop()
  return rows
}

async function measureFullExports(
  dataset: Dataset,
  toMake: FileToMake[],
  floor: Way,
  rounds: number,
  { files, settings }: { files: StoreSettings; settings: Record<string, string> },
  stack: AsyncDisposableStack,
): Promise<Row[]> {
  const service = await startServiceProcess(dataset.dataDir, settings)
  stack.defer(service.stop)
  const [movements] = waysOfService(service, dataset.year)
  const fullExports = toMake.map((file) => wayOfFullExport(file, service, dataset, files))
  const ways = [floor, movements!, ...fullExports]
  const checked = await checkSameContent(ways)
  const rows = await runRounds(ways, rounds, dataset.databasePid)
  checkRounds(rows, checked)
  await forget(dataset, files)
  await service.stop()
  return rows
}

export function wayOfFullExport(
  { name, parameters, repeats }: FileToMake,
  service: ServiceProcess,
  dataset: Dataset,
  files: StoreSettings,
): Way {
  let first: Job | undefined
  const run = async (): Promise<Transfer> => {
    await forget(dataset, files)
    const started = performance.now()
    let job = await askJob(service, `all?version=1.0.0&${parameters}`)
    if (job.status !== 'INIT')
      throw new Error(`${job.id} existed before, so there would be nothing to measure`)
    while (job.status === 'INIT') {
      await delay(pollMs)
      job = await Promise.race([askJob(service, `all/status?exportId=${job.id}`), service.failed])
    }
    if (job.status === 'FAILED') throw new Error(`${job.id} failed: ${job.reason}`)
    first ??= job
    if (job[repeats] === undefined || job[repeats] !== first[repeats])
      throw new Error(`${name}: ${repeats} was ${first[repeats]}, and is ${job[repeats]}`)
    const { size, rows } = job as Required<Job>
    return { ms: performance.now() - started, firstByteMs: null, bytes: size, rows }
  }
  return { name, pid: service.pid, address: undefined, run }
}

export async function askJob(service: ServiceProcess, path: string): Promise<Job> {
  const answer = await fetch(`${service.url}/api/v1/mad/${path}`, { headers: service.headers })
  if (answer.status !== 200) throw new Error(`mad/${path} answered ${answer.status}: ${await answer.text()}`)
  return (await answer.json()) as Job
}

export async function forget({ ownerUrl, year }: Dataset, files: StoreSettings): Promise<void> {
  const client = new pg.Client(ownerUrl)
  await client.connect()
  const keys = await forgetExports(client, year).finally(() => client.end())
  const store = await openStore(files, defaultTiming.store)
  for (const key of keys) await store.remove(key)
}
