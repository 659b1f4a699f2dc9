/** A filled folder in its own database, and service processes that export it through gates. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import pg from 'pg'
import { expect, type TestContext, test } from 'vitest'
import { readConfig } from '../../../src/config.ts'
import { createPool } from '../../../src/db/pool.ts'
import type { JobState } from '../../../src/jobs/job.ts'
import { type Swept, sweepExports } from '../../../src/jobs/retention/retention.ts'
import { openStore } from '../../../src/store/open-store.ts'
import type { ObjectStore } from '../../../src/store/store.ts'
import { defaultTiming, type Timing } from '../../../src/timing.ts'
import {
  backwards,
  downloadFile,
  ended,
  type JobAnswer,
  type Progress,
  statusUrl,
  triggerAmongMany,
} from '../full-export.ts'
import { seededYear } from '../ledgers/seeded-year.ts'
import { createTenants, credentials } from '../ledgers/tenants.ts'
import {
  logged,
  type RunningService,
  type ServiceProcess,
  serviceSettings,
  startProcess as startServiceProcess,
} from '../process.ts'
import { copyLedger, type TestDatabase } from '../servers/database.ts'
import { type Gate, startGate } from '../servers/gate.ts'
import { request, startTestService } from '../service.ts'
import { until } from '../until.ts'

/** The store of a stage. */
export interface Files {
  /** Settings of the services. */
  settings: Record<string, string>
  store: ObjectStore
  /** Names of all objects in the store, finished or not. */
  stored(): Promise<string[]>
}

export interface Gated<Service> {
  service: Service
  gate: Gate
}

export interface StageOptions {
  /** The database, which is dropped at the end. By default a new one on the server of the run. */
  database?: TestDatabase
  /** Movements of the folder; by default 15,000. */
  movements?: number
  /** The store; by default a folder. */
  files?: Files
  /** Uses production timing, including pauses between attempts. */
  isReal?: boolean
}

export type FailingStage = Awaited<ReturnType<typeof setFailingStage>>

/** A stage of one test, which ends with it. */
export async function failingStageOf(
  { onTestFinished }: TestContext,
  options?: StageOptions,
): Promise<FailingStage> {
  const stage = await setFailingStage(options)
  onTestFinished(() => stage.close())
  return stage
}

/** Tests of a file that run side by side. Each has its own stage and processes, and time for a busy machine. */
export const concurrently =
  <Stage>(open: (context: TestContext) => Promise<Stage>) =>
  (name: string, run: (stage: Stage, context: TestContext) => Promise<void>): void =>
    test.concurrent(name, { timeout: 300_000 }, async (context) => run(await open(context), context))

/** Begins an export, which reads up to this share of the ledger and then waits at its gate. */
export async function exportAt<Service extends RunningService>(
  stage: FailingStage,
  part: number,
  started: Promise<Gated<Service>>,
) {
  const { service, gate } = await started
  const id = await stage.begin(service)
  return { service, gate, id, seen: [await stage.readUpTo(part, gate, service, id)] }
}

/**
 * Begins exports in a process each, and kills each process when it has read up to its share of the ledger. Kills only
 * once all are busy: a process with a free slot would claim the export of a killed process.
 */
export async function killedAt(stage: FailingStage, parts: number[]) {
  const begun: { part: number; id: string; service: ServiceProcess; gate: Gate }[] = []
  for (const part of parts) {
    const { service, gate } = await stage.startGatedProcess()
    const id = await stage.begin(service)
    // Each process has an export of its own.
    expect(service.logged('export.started', id)).toBe(true)
    begun.push({ part, id, service, gate })
  }
  return Promise.all(
    begun.map(async ({ part, id, service, gate }) => {
      const reached = await stage.readUpTo(part, gate, service, id)
      await service.kill()
      return { id, seen: [reached] }
    }),
  )
}

/**
 * Lets an export read the rest, and locks its row: the process that stores the file cannot record it. Resolves once the
 * file is complete.
 */
export async function storeUnrecorded({ sql, stored }: FailingStage, gate: Gate, exportId: string) {
  await sql('begin')
  await sql('select from grandlivre.exports where id = $1 for update', [exportId])
  gate.open()
  await until(async () => (await stored()).some((name) => /^1-[0-9a-f]{16}\.json$/.test(name)))
}

/** A time at which all leftovers in a store are old enough. */
const oneDayLater = () => new Date(Date.now() + 25 * 3_600_000)

/**
 * The gate stands before EXPORT_DATABASE_URL, and an export that finds it silent would read the main database, which has
 * none. On a busy machine a begin takes longer than production waits for it.
 */
const patient: Partial<Timing> = {
  replica: { ...defaultTiming.replica, waitMs: 60_000, silentMs: 30_000 },
}

/** Times with which everything that tests wait for happens at once. */
const quick: Partial<Timing> = {
  ...patient,
  exports: { ...defaultTiming.exports, renewMs: 150, superviseSeconds: 1, pollSeconds: 0.5 },
  store: { ...defaultTiming.store, tries: 5, retryMs: 50 },
}

/** Makes the next attempt due at once instead of 4 to 16 seconds later. */
const withoutPauses = `
  create function public.without_pause() returns trigger language plpgsql as
    $$ begin new.start_after := now(); return new; end $$;
  create trigger without_pause before insert on pgboss.job for each row when (new.state = 'retry')
    execute function public.without_pause()`

export async function setFailingStage(options: StageOptions = {}) {
  const { movements = 15_000, isReal = false } = options
  const ledger = seededYear(movements)
  const { database, facts: folder } = options.database
    ? { database: options.database, facts: await ledger.fill(options.database) }
    : await copyLedger(ledger)
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('ONE')
  if (!isReal) await staff.client.query(withoutPauses)
  const headers = credentials(await staff.token('ONE', 'api', folder), secret)
  const firm = credentials(await staff.token('ONE', 'firm', folder), secret)
  await staff.end()
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-failing-'))
  const files = options.files ?? (await folderIn(dataDir))
  const services: RunningService[] = []
  const ends: (() => Promise<void>)[] = []
  const gates: Gate[] = []
  // There is one connection, so that a test can hold a transaction open. After a restart of the database the pool opens
  // a new one.
  const owner = new pg.Pool({ connectionString: database.ownerUrl, max: 1, idleTimeoutMillis: 0 })
  owner.on('error', () => {})
  // biome-ignore lint/suspicious/noExplicitAny: rows of any shape
  const sql = async (text: string, values: unknown[] = []): Promise<any[]> =>
    (await owner.query(text, values)).rows
  const settingsWith = (settings: Record<string, string>) => ({
    DATABASE_URL: database.ownerUrl,
    DATA_DIR: dataDir,
    ...files.settings,
    ...settings,
  })
  const timing = isReal ? patient : quick
  /**
   * Starts a service in this process, which takes half a second less than a process of its own. All services share the
   * stage's store.
   */
  const start = async (settings: Record<string, string> = {}): Promise<RunningService> => {
    const config = readConfig({ ...serviceSettings, ...settingsWith(settings) })
    const { url, lines, stop } = await startTestService(database, config, {
      timing: { ...defaultTiming, ...timing },
    })
    ends.push(stop)
    const service: RunningService = { url, logged: (...of) => logged(lines, ...of) }
    services.push(service)
    return service
  }
  /** Starts a service in its own process, which the test may kill or freeze. */
  const startProcess = async (settings: Record<string, string> = {}) => {
    const service = await startServiceProcess(settingsWith(settings), timing)
    ends.push(service.kill)
    services.push(service)
    return service
  }
  const gated = async <Service>(
    startWith: (settings: Record<string, string>) => Promise<Service>,
    settings: Record<string, string> = {},
  ) => {
    const gate = await startGate(database.serviceUrl)
    gates.push(gate)
    return { gate, service: await startWith({ EXPORT_DATABASE_URL: gate.url, ...settings }) }
  }
  const progress = async (service: RunningService, exportId: string) =>
    (await request(statusUrl(service.url, exportId), headers)).body.progress as Progress | undefined
  return {
    /** Headers of the company token. */
    headers,
    /** Headers of the firm token, for the same folder. */
    firmHeaders: { ...firm, 'society-id': folder.folderId },
    schemaId: folder.schemaId,
    /** The store of its services, for a test that writes to it. */
    store: files.store,
    sql,
    /**
     * Pretends that fifteen seconds have passed: exports of a process that has been silent since go to another
     * one.
     */
    noticeSilence: async (exportIds: string[]) => {
      await sql(
        `update pgboss.job set heartbeat_on = heartbeat_on - interval '1 minute'
         where state = 'active' and data ->> 'exportId' = any($1)`,
        [exportIds],
      )
    },
    /** Terminates the connections of exports, like a restart of the database. */
    terminateConnections: async () => {
      await sql(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name like 'grandlivre%'`,
      )
    },
    start,
    startProcess,
    /** Like `start`; its exports read only as far as its gate lets them. */
    startGated: (settings?: Record<string, string>): Promise<Gated<RunningService>> => gated(start, settings),
    /** Like `startProcess`; its exports read only as far as its gate lets them. */
    startGatedProcess: (settings?: Record<string, string>): Promise<Gated<ServiceProcess>> =>
      gated(startProcess, settings),
    /** Triggers an export, a new one each time, and waits until a service has claimed it. */
    begin: async (service: RunningService): Promise<string> => {
      await sql('update grandlivre.exports set latest = false')
      const { status, body } = await triggerAmongMany(service.url, headers)
      expect(status).toBe(200)
      await until(() => services.some((one) => one.logged('export.started', body.id)))
      return body.id
    },
    /** Lets an export read until its status reports about this share as read. */
    readUpTo: async (
      part: number,
      gate: Gate,
      service: RunningService,
      exportId: string,
    ): Promise<Progress> => {
      const renewedAt = async () =>
        (await sql('select renewed_at::text as at from grandlivre.exports where id = $1', [exportId]))[0].at
      const nextRenewal = async (): Promise<Progress> => {
        const before = await renewedAt()
        let now: Progress | undefined
        await until(async () => {
          now = await progress(service, exportId)
          if (!now) throw new Error('the export ended before its time')
          return (await renewedAt()) !== before
        })
        return now!
      }
      // More bytes than the database sends per movement (some 130), so that all intended movements get
      // through. The next step waits until these are read and the export stands still, however slow the
      // machine is.
      const bytesEach = 150
      const step = movements / 30
      let through = Math.max(0, part - 0.3) * movements
      gate.allow(through * bytesEach)
      for (;;) {
        let now = await nextRenewal()
        // Waits for three renewals: on a busy machine a store takes longer than one renewal to accept a part.
        for (let still = 0; still < 3 || now.rows < through; ) {
          const next = await nextRenewal()
          still = next.rows === now.rows ? still + 1 : 0
          now = next
        }
        if (now.rows >= part * movements) return now
        through += step
        gate.allow(step * bytesEach)
      }
    },
    progress,
    /** Fails unless the export is in that state, after that many attempts. */
    expectRow: async (exportId: string, state: JobState, attempt: number): Promise<void> => {
      const rows = await sql('select state, attempt from grandlivre.exports where id = $1', [exportId])
      expect(rows).toEqual([{ state, attempt }])
    },
    /** Waits for FAILED with this reason, after that many attempts. */
    expectFailed: async (service: RunningService, exportId: string, reason: RegExp, attempt: number) => {
      const job = await ended(service.url, headers, exportId)
      expect([job.status, job.reason]).toEqual(['FAILED', expect.stringMatching(reason)])
      expect(await sql('select state, attempt from grandlivre.exports where id = $1', [exportId])).toEqual([
        { state: 'failed', attempt },
      ])
    },
    /** Waits for DONE, then checks the file against the status and the folder, and that progress never went back. */
    expectRightFile: async (
      service: RunningService,
      exportId: string,
      seen: Progress[] = [],
    ): Promise<JobAnswer> => {
      const job = await ended(service.url, headers, exportId, (now) => seen.push(now))
      expect(backwards(seen)).toEqual([])
      expect(job).toMatchObject({ status: 'DONE', rows: movements })
      const file = await downloadFile(job.url!)
      expect([file.bytes.length, file.sha256]).toEqual([job.size, job.sha256])
      const inFile = file.json.data.entries.flatMap((entry: { movements: { producerId: string }[] }) =>
        entry.movements.map(({ producerId }) => producerId),
      )
      const inFolder = (await sql('select id from grandlivre.movements')).map(({ id }) => id)
      expect(inFile.toSorted()).toEqual(inFolder.sort())
      return job
    },
    /** Names of everything in the store, finished or not. */
    stored: files.stored,
    /** Runs retention as if all leftovers were old enough, and checks that only files of exports remain. */
    sweepLater: async (): Promise<Swept> => {
      const service = createPool(database.serviceUrl, { max: 2, applicationName: 'test sweep' })
      const parts = { database: service, store: files.store, retentionDays: 7 }
      const swept = await sweepExports(parts, oneDayLater()).finally(() => service.end())
      const named = await sql('select file_key from grandlivre.exports where file_key is not null')
      expect((await files.stored()).sort()).toEqual(named.map(({ file_key }) => basename(file_key)).sort())
      return swept
    },
    close: async () => {
      // The gates close first, so that no export still waits when its service stops.
      for (const gate of gates) await gate.close()
      for (const end of ends) await end()
      await rm(dataDir, { recursive: true, force: true })
      await owner.end()
      await database.drop()
    },
  }
}

/** The store that services create in that data folder. */
export async function folderIn(dataDir: string): Promise<Files> {
  const folder = join(dataDir, 'files')
  return {
    settings: { DATA_DIR: dataDir },
    store: await openStore(
      { kind: 'filesystem', folder, publicUrl: '', signingKeys: [] },
      defaultTiming.store,
    ),
    stored: async () => {
      const names = await readdir(folder, { recursive: true, withFileTypes: true })
      return names.filter((name) => name.isFile()).map((name) => name.name)
    },
  }
}
