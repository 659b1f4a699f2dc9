/** The service on a primary server, with its exports on a hot standby of it. */
import pg from 'pg'
import { expect } from 'vitest'
import type { Config } from '../../../src/config.ts'
import { defaultTiming, type Timing } from '../../../src/timing.ts'
import { type Download, download } from '../download.ts'
import type { Staff } from '../ledgers/tenants.ts'
import { request, startTestService, type TestService } from '../service.ts'
import { fillPrimary } from './fill-primary.ts'
import { type Replication, startReplication } from './standby.ts'

export interface ReplicatedStage extends Replication {
  /** Of the primary. */
  staff: Staff
  service: TestService
  /** Headers of the company token of folder 111. */
  company: Record<string, string>
  /** Headers of the firm token of firm 110, without society-id. */
  firm: Record<string, string>
  thirdPartyId: string
  /** Changes a comment of folder 111, in an entry and an account of exercice 12. @returns the ledger's version */
  change(comment: string): Promise<bigint>
  /** An export of the service, below `/api/v1`. */
  get(path: string, headers?: Record<string, string>): Promise<Download>
  /** What /readyz calls degraded; fails if the process is not ready. */
  degraded(): Promise<string[]>
  /** Runs a statement on the primary, or on the standby if it changes nothing there, as a superuser. */
  onPrimary(statement: string): Promise<pg.QueryResult>
  onStandby(statement: string): Promise<pg.QueryResult>
  /** Log lines of that event. */
  logged(event: string): string[]
  close(): Promise<void>
}

/** Threads look at the replica often, so that tests need not wait for that. */
const quick: Timing = { ...defaultTiming, replica: { ...defaultTiming.replica, leftMs: 200 } }

/** @param exportUrl by default that of the standby */
export async function setReplicatedStage(
  settings: Partial<Config> = {},
  { timing = quick, throughProxy = async (url: string) => url } = {},
): Promise<ReplicatedStage> {
  const replication = await startReplication()
  const { primary, standby } = replication
  const { staff, thirdPartyId, company, firm } = await fillPrimary(primary.ownerUrl)
  await standby.catchUp()
  const exportDatabaseUrl = await throughProxy(standby.ownerUrl)
  const service = await startTestService(primary, { exportDatabaseUrl, ...settings }, { timing })
  return {
    ...replication,
    staff,
    service,
    company,
    firm,
    thirdPartyId,
    change: async (comment) => {
      await staff.client.query('begin')
      await staff.client.query(
        'update grandlivre.entries set comment = $1 where (schema_id, folder_id, id) = (100, 111, 12)',
        [comment],
      )
      await staff.client.query(
        'update grandlivre.accounts set name = $1 where (schema_id, folder_id, id) = (100, 111, 107)',
        [comment],
      )
      await staff.client.query('commit')
      const version = await staff.client.query(`select ledger_version from grandlivre.folders where id = 111`)
      return BigInt(version.rows[0].ledger_version)
    },
    get: (path, headers = company) => download(`${service.url}/api/v1${path}`, headers),
    degraded: async () => {
      const { status, body } = await request(`${service.url}/readyz`)
      expect([status, body.status]).toEqual([200, 'ready'])
      return body.degraded ?? []
    },
    onPrimary: (statement) => run(primary.ownerUrl, statement),
    onStandby: (statement) => run(standby.ownerUrl, statement),
    logged: (event) => service.lines.filter((line) => line.includes(`"${event}"`)),
    close: async () => {
      await service.stop()
      await staff.end()
      await replication.drop()
    },
  }
}

/** The version of the ledger that an answer shows. */
export function versionOf({ headers }: Download): bigint {
  return BigInt(String(headers['x-ledger-cursor']).split('.')[0]!)
}

/** How many connections of exports a server has. @param condition on `pg_stat_activity`, such as of those that wait */
export async function exportConnections(ownerUrl: string, condition = 'true'): Promise<number> {
  const { rows } = await run(
    ownerUrl,
    `select count(*)::int as count from pg_stat_activity
     where application_name in ('grandlivre export', 'grandlivre replica') and ${condition}`,
  )
  return rows[0].count
}

async function run(url: string, statement: string): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await client.query(statement)
  } finally {
    await client.end()
  }
}
