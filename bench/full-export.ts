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
import { forgetExports } from '../src/sample/demo-folder.sql.ts'
import { openStore } from '../src/store/open-store.ts'
import type { StoreSettings } from '../src/store/store.ts'
import { defaultTiming } from '../src/timing.ts'
import type { Dataset } from './dataset.ts'
import { minioInstalled, startMinio } from './minio.ts'
import { say } from './own-process.ts'
import { type Row, runRounds } from './rounds.ts'
import { checkSameContent } from './same-content.ts'
import { type ServiceProcess, startServiceProcess } from './service-process.ts'
import { type Transfer, type Way, waysOfService } from './ways.ts'

interface Job {
  id: string
  status: 'INIT' | 'DONE' | 'FAILED'
  size?: number
  reason?: string
}

/** The maximum delay in noticing the end; polling more often would add to what is measured. */
const pollMs = 25

/** The parameters of a trigger. */
interface FileToMake {
  name: string
  parameters: string
}

const jsonFile = { name: 'JSON', parameters: 'format=JSON' }

/** Of the whole folder, but for the FEC, which is of its last exercice: all but one in a hundred movements. */
function everyFile({ exerciceId }: Dataset['year']): FileToMake[] {
  return [
    jsonFile,
    { name: 'JSON, zstd', parameters: 'format=JSON&compression=zstd' },
    { name: 'TRA', parameters: 'format=TRA' },
    { name: 'TRA, zstd', parameters: 'format=TRA&compression=zstd' },
    { name: 'FEC', parameters: `format=FEC&idExercice=${exerciceId}` },
    { name: 'CSV', parameters: 'format=CSV' },
    { name: 'CSV, zstd', parameters: 'format=CSV&compression=zstd' },
    { name: 'Parquet', parameters: 'format=PARQUET' },
  ]
}

/**
 * @param stack stops what an interruption leaves
 * @returns for each installed store the floor, the movements export and the full exports, which took turns;
 *   to MinIO only the JSON file.
 */
export async function measureFullExports(
  dataset: Dataset,
  floor: Way,
  rounds: number,
  stack: AsyncDisposableStack,
): Promise<Record<string, Row[]>> {
  const measure = async (
    toMake: FileToMake[],
    files: StoreSettings,
    settings: Record<string, string>,
  ): Promise<Row[]> => {
    const service = await startServiceProcess(dataset.dataDir, settings)
    stack.defer(service.stop)
    const [movements] = waysOfService(service, dataset.year)
    const fullExports = toMake.map((file) => wayOfFullExport(file, service, dataset, files))
    const ways = [floor, movements!, ...fullExports]
    await checkSameContent(ways)
    const rows = await runRounds(ways, rounds, dataset.databasePid)
    await forget(dataset, files)
    await service.stop()
    return rows
  }
  const folder = { kind: 'filesystem', folder: dataset.filesFolder, publicUrl: '', signingKey: '' } as const
  const toFolder = { 'full export to a folder': await measure(everyFile(dataset.year), folder, {}) }
  if (!minioInstalled) {
    say('full export to MinIO: left out, as .cache/bin/minio is not there; .ci/run builds it')
    return toFolder
  }
  const minio = await startMinio(stack)
  const settings = { ...minio.settings, MASTER_KEY: dataset.masterKey }
  const toMinio = { 'full export to MinIO': await measure([jsonFile], minio.files, settings) }
  await minio.stop()
  return { ...toFolder, ...toMinio }
}

function wayOfFullExport(
  { name, parameters }: FileToMake,
  service: ServiceProcess,
  dataset: Dataset,
  files: StoreSettings,
): Way {
  const ask = async (path: string): Promise<Job> => {
    const answer = await fetch(`${service.url}/api/v1/mad/${path}`, { headers: service.headers })
    if (answer.status !== 200)
      throw new Error(`mad/${path} answered ${answer.status}: ${await answer.text()}`)
    return (await answer.json()) as Job
  }
  const run = async (): Promise<Transfer> => {
    await forget(dataset, files)
    const started = performance.now()
    let job = await ask(`all?version=1.0.0&${parameters}`)
    if (job.status !== 'INIT')
      throw new Error(`${job.id} existed before, so there would be nothing to measure`)
    while (job.status === 'INIT') {
      await delay(pollMs)
      job = await Promise.race([ask(`all/status?exportId=${job.id}`), service.failed])
    }
    if (job.status === 'FAILED') throw new Error(`${job.id} failed: ${job.reason}`)
    return { ms: performance.now() - started, firstByteMs: null, bytes: job.size!, rows: null }
  }
  return { name: `full export, ${name}`, pid: service.pid, address: undefined, run }
}

async function forget({ ownerUrl, year }: Dataset, files: StoreSettings): Promise<void> {
  const client = new pg.Client(ownerUrl)
  await client.connect()
  const keys = await forgetExports(client, year).finally(() => client.end())
  const store = await openStore(files, defaultTiming.store)
  for (const key of keys) await store.remove(key)
}
