/** The service on a primary server, with its exports on a hot standby of it. */
import pg from 'pg'
import { expect } from 'vitest'
import type { Config } from '../../../src/config.ts'
import { defaultTiming, type Timing } from '../../../src/timing.ts'
import { type Download, download } from '../download.ts'
import { ask } from '../servers/database.ts'
import { request, startTestService } from '../service.ts'
import { fillPrimary } from './fill-primary.ts'
import { startReplication } from './standby.ts'

export type ReplicatedStage = Awaited<ReturnType<typeof setReplicatedStage>>

/**
 * Threads look at the replica often, so tests need not wait for that. A replica that is slow because the machine is busy
 * is not away.
 */
const quick: Timing = {
  ...defaultTiming,
  replica: { ...defaultTiming.replica, silentMs: 10_000, leftMs: 200 },
}

/** @param exportUrl by default the address of the standby */
export async function setReplicatedStage(
  settings: Partial<Config> = {},
  { timing = quick, throughProxy = async (url: string) => url } = {},
) {
  const replication = await startReplication()
  const { primary, standby } = replication
  const { staff, thirdPartyId, company, firm } = await fillPrimary(primary.ownerUrl)
  await standby.catchUp()
  const exportDatabaseUrl = await throughProxy(standby.ownerUrl)
  const service = await startTestService(primary, { exportDatabaseUrl, ...settings }, { timing })
  return {
    ...replication,
    /** Staff of the primary. */
    staff,
    service,
    /** Headers of the company token of folder 111. */
    company,
    /** Headers of the firm token of firm 110, without society-id. */
    firm,
    thirdPartyId,
    /** Changes a comment of folder 111, in an entry and an account of exercice 12. @returns the ledger's version */
    change: async (comment: string) => {
      const text = pg.escapeLiteral(comment)
      await staff.sql(`begin;
        update entries set comment = ${text} where (schema_id, folder_id, id) = (100, 111, 12);
        update accounts set name = ${text} where (schema_id, folder_id, id) = (100, 111, 107);
        commit`)
      const [{ ledger_version: version }] = await staff.sql(
        'select ledger_version from folders where id = 111',
      )
      return BigInt(version)
    },
    /** Downloads an export of the service, by its path below `/api/v1`. */
    get: (path: string, headers = company) => download(`${service.url}/api/v1${path}`, headers),
    /** The needs that /readyz reports as degraded. Fails if the process is not ready. */
    degraded: async (): Promise<string[]> => {
      const { status, body } = await request(`${service.url}/readyz`)
      expect([status, body.status]).toEqual([200, 'ready'])
      return body.degraded ?? []
    },
    /** Runs a statement as a superuser on the primary, or on the standby if it changes nothing there. */
    onPrimary: (statement: string) => ask(primary.ownerUrl, statement),
    onStandby: (statement: string) => ask(standby.ownerUrl, statement),
    /** Log lines of that event. */
    logged: (event: string) => service.lines.filter((line) => line.includes(`"${event}"`)),
    close: async () => {
      await service.stop()
      await staff.end()
      await replication.drop()
    },
  }
}

/** The version of the ledger in the headers of an answer. */
export function versionOf({ headers }: Download): bigint {
  return BigInt(String(headers['x-ledger-cursor']).split('.')[0]!)
}

/**
 * How many connections of exports a server has.
 * @param condition on `pg_stat_activity`, such as for connections that wait
 */
export async function exportConnections(ownerUrl: string, condition = 'true'): Promise<number> {
  const [{ count }] = await ask(
    ownerUrl,
    `select count(*)::int as count from pg_stat_activity
     where application_name in ('grandlivre export', 'grandlivre replica') and ${condition}`,
  )
  return count
}
