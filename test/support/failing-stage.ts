/** A filled folder in a database of its own, and services as processes that export it through gates. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { seed } from '../../src/ledger/seed.ts'
import { createTestDatabase } from './database.ts'
import { downloadFile, ended, type JobAnswer, type Progress, statusUrl, trigger } from './full-export.ts'
import { type Gate, startGate } from './gate.ts'
import { type ServiceProcess, startProcess } from './process.ts'
import { request, until } from './service.ts'
import { createTenants, credentials } from './tenants.ts'

/** Some twelve megabytes of JSON: far more than what the buffers on the way hold. */
export const movements = 15_000

export interface FailingStage {
  headers: Record<string, string>
  schemaId: string
  // biome-ignore lint/suspicious/noExplicitAny: rows of any shape
  sql(text: string, values?: unknown[]): Promise<any[]>
  /** Ends the connections of the exports, as a restart of the database does. */
  terminateConnections(): Promise<void>
  /** A service, ready; all of one stage store in the same folder. */
  start(settings?: Record<string, string>): Promise<ServiceProcess>
  /** A service whose exports read only as far as its gate lets them. */
  startGated(settings?: Record<string, string>): Promise<{ service: ServiceProcess; gate: Gate }>
  /** Triggers an export, another one each time, and waits until a service has it. */
  begin(service: ServiceProcess): Promise<string>
  /** Lets an export read until its status says that about this part of it is done. */
  readUpTo(part: number, gate: Gate, service: ServiceProcess, exportId: string): Promise<Progress>
  progress(service: ServiceProcess, exportId: string): Promise<Progress | undefined>
  /** Waits for DONE, and that the file is what the status says and what the folder holds. */
  expectRightFile(service: ServiceProcess, exportId: string, seen?: Progress[]): Promise<JobAnswer>
  /** Everything in the store, finished or not. */
  stored(): Promise<string[]>
  close(): Promise<void>
}

export async function setFailingStage(): Promise<FailingStage> {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('ONE')
  const folder = await seed(database.ownerUrl, { movements, year: 2025 })
  const headers = credentials(await staff.token('ONE', 'api', folder), secret)
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-failing-'))
  const processes: ServiceProcess[] = []
  const gates: Gate[] = []
  const sql = async (text: string, values: unknown[] = []) => (await staff.client.query(text, values)).rows
  const start = async (settings: Record<string, string> = {}) => {
    const service = await startProcess({ DATABASE_URL: database.ownerUrl, DATA_DIR: dataDir, ...settings })
    processes.push(service)
    return service
  }
  const progress = async (service: ServiceProcess, exportId: string) =>
    (await request(statusUrl(service.url, exportId), headers)).body.progress as Progress | undefined
  return {
    headers,
    schemaId: folder.schemaId,
    sql,
    terminateConnections: async () => {
      await sql(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name like 'grandlivre%'`,
      )
    },
    start,
    startGated: async (settings = {}) => {
      const gate = await startGate(database.serviceUrl)
      gates.push(gate)
      return { gate, service: await start({ EXPORT_DATABASE_URL: gate.url, ...settings }) }
    },
    begin: async (service) => {
      await sql('update grandlivre.exports set latest = false')
      const { body } = await trigger(service.url, headers)
      await until(() => processes.some(({ logged }) => logged('export.started', body.id)))
      return body.id
    },
    readUpTo: async (part, gate, service, exportId) => {
      const renewedAt = async () =>
        (await sql('select renewed_at::text as at from grandlivre.exports where id = $1', [exportId]))[0].at
      // A movement is some hundred bytes to the database. The last steps are small, and each waits until the process
      // was heard of twice: what it tells then is not from before the step, however slow the machine.
      gate.allow(Math.max(0, part - 0.2) * movements * 100)
      for (;;) {
        let now: Progress | undefined
        for (let i = 0; i < 2; i++) {
          const before = await renewedAt()
          await until(async () => {
            now = await progress(service, exportId)
            if (!now) throw new Error('the export ended before its time')
            return (await renewedAt()) !== before
          })
        }
        if (now!.rows >= part * movements) return now!
        gate.allow(90_000)
      }
    },
    progress,
    expectRightFile: async (service, exportId, seen = []) => {
      const job = await ended(service.url, headers, exportId, (now) => seen.push(now))
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
    stored: async () => {
      const names = await readdir(join(dataDir, 'files'), { recursive: true, withFileTypes: true })
      return names.filter((name) => name.isFile()).map((name) => name.name)
    },
    close: async () => {
      for (const { kill } of processes) await kill()
      for (const gate of gates) await gate.close()
      await rm(dataDir, { recursive: true, force: true })
      await staff.end()
      await database.drop()
    },
  }
}
