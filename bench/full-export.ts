/**
 * The export of a whole folder to a file, on each kind of store: from its trigger until its status says DONE, beside
 * the movements export of the same service and the floor. Each store has a service process of its own, as all
 * processes on one database take exports from one queue.
 *
 * For an hour the same trigger is answered with the same export. So before each one, outside of what is measured, the
 * bench deletes the row of the last as the owner of the database, and its file: nothing of the service is switched off,
 * and no disk fills up.
 */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { forgetExports } from '../src/sample/demo-folder.sql.ts'
import { openStore } from '../src/store/open-store.ts'
import type { StoreSettings } from '../src/store/store.ts'
import type { Dataset } from './dataset.ts'
import { minioInstalled, startMinio } from './minio.ts'
import type { ReportProgress } from './progress.ts'
import { type Rounds, runRounds } from './rounds.ts'
import { checkSameContent } from './same-content.ts'
import { type ServiceProcess, startServiceProcess } from './service-process.ts'
import { fullExportName, type Transfer, traExportName, type Way, waysOfService } from './ways.ts'

export interface FullExports {
  store: 'the filesystem' | 'MinIO'
  /** The floor, the movements export and the full exports, in turns. That in TRA goes to the filesystem alone. */
  rounds: Rounds
}

interface Job {
  id: string
  status: 'INIT' | 'DONE' | 'FAILED'
  size?: number
  reason?: string
}

/** How late the end may be seen; asked more often, the questions would be part of what is measured. */
const pollMs = 25

/**
 * @param stack leaves what an interruption passes by
 * @returns one for each store there is
 */
export async function measureFullExports(
  dataset: Dataset,
  floor: Way,
  rounds: number,
  progress: ReportProgress,
  stack: AsyncDisposableStack,
): Promise<FullExports[]> {
  const measure = async (
    store: FullExports['store'],
    files: StoreSettings,
    settings: Record<string, string>,
  ): Promise<FullExports> => {
    const report: ReportProgress = (what, share) => progress(`${fullExportName(store)}, ${what}`, share)
    const service = await startServiceProcess(dataset.dataDir, settings)
    stack.defer(service.stop)
    const [movements] = waysOfService(service, dataset.year)
    const ways = [floor, movements!, wayOfFullExport(fullExportName(store), 'JSON', service, dataset, files)]
    if (store === 'the filesystem') ways.push(wayOfFullExport(traExportName, 'TRA', service, dataset, files))
    await checkSameContent(ways, report)
    const measured = { store, rounds: await runRounds(ways, rounds, report) }
    await forget(dataset, files)
    await service.stop()
    return measured
  }
  const folder = { kind: 'filesystem', folder: dataset.filesFolder, publicUrl: '', signingKey: '' } as const
  const measured = [await measure('the filesystem', folder, {})]
  if (!minioInstalled) return measured
  const minio = await startMinio(stack)
  measured.push(await measure('MinIO', minio.files, { ...minio.settings, MASTER_KEY: dataset.masterKey }))
  await minio.stop()
  return measured
}

function wayOfFullExport(
  name: string,
  format: 'JSON' | 'TRA',
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
    let job = await ask(`all?version=1.0.0&format=${format}`)
    if (job.status !== 'INIT') throw new Error(`${job.id} was there before: it would be measured as nothing`)
    while (job.status === 'INIT') {
      await delay(pollMs)
      job = await Promise.race([ask(`all/status?exportId=${job.id}`), service.failed])
    }
    if (job.status === 'FAILED') throw new Error(`${job.id} failed: ${job.reason}`)
    return { seconds: (performance.now() - started) / 1000, firstByteMs: null, bytes: job.size! }
  }
  return { name, pid: service.pid, address: undefined, run }
}

async function forget({ ownerUrl, year }: Dataset, files: StoreSettings): Promise<void> {
  const client = new pg.Client(ownerUrl)
  await client.connect()
  const keys = await forgetExports(client, year).finally(() => client.end())
  const store = await openStore(files)
  for (const key of keys) await store.remove(key)
}
