import type { ClientBase, Pool } from 'pg'
import { utc } from '../db/literal.ts'
import { lookUp } from '../db/look-up.ts'
import { queryCount, queryRow, queryRows, queryValue } from '../db/statement.ts'

export interface Fingerprints {
  /** Null until a process has adopted its key. */
  fingerprint: Buffer | null
  /** Of the key that `rotate-key` goes to, until it is done. */
  nextFingerprint: Buffer | null
}

/**
 * What the database says of its key. `adopts`: whether it can adopt one, not before the migration for it. `newestSecret`:
 * the encrypted secret that was stored last; null if there is none, or a fingerprint.
 * @returns undefined where there are no secrets yet, or by the first migrations of all, which the owner alone meets
 */
export async function readStoredKey(client: ClientBase) {
  const known = await queryRow<{ adopts: boolean; secrets: boolean }>(
    client,
    `select to_regprocedure('grandlivre.master_key_standing()') is not null as adopts,
       to_regclass('grandlivre.signing_secrets') is not null as secrets`,
  )
  if (!known?.secrets) return undefined
  const { adopts } = known
  // Every column, since a database that is not migrated yet has no next_fingerprint.
  const row = await queryRow<{
    fingerprint?: Buffer | null
    next_fingerprint?: Buffer | null
    newest_secret: Buffer | null
  }>(
    client,
    adopts
      ? 'select * from grandlivre.master_key_standing()'
      : `select (
           select secret_encrypted from (
             select secret_encrypted, created_at from grandlivre.third_party_secrets
             union all select secret_encrypted, created_at from grandlivre.signing_secrets
           ) stored where secret_encrypted <> '' order by created_at desc limit 1) as newest_secret`,
  )
  const { fingerprint = null, next_fingerprint: nextFingerprint = null, newest_secret: newestSecret } = row!
  return { adopts, fingerprint, nextFingerprint, newestSecret }
}

export async function readFingerprints(database: Pool): Promise<Fingerprints> {
  const text =
    'select fingerprint, next_fingerprint as "nextFingerprint" from grandlivre.master_key_standing()'
  return (await queryRow<Fingerprints>(database, lookUp({ text })))!
}

/** @returns the fingerprint of the database: that of the first process that adopted its key */
export function adoptFingerprint(client: ClientBase, fingerprint: Buffer) {
  return queryValue<Buffer>(client, 'select grandlivre.adopt_master_key($1)', [fingerprint])
}

/** The fingerprint of the key that encrypts until the end of the transaction. */
export function readSealingKey(client: ClientBase) {
  return queryValue<Buffer | null>(client, 'select grandlivre.sealing_key()')
}

/** The lock of one key, as two numbers. @param fingerprint an expression */
const keyLock = (fingerprint: string) =>
  [`hashtext('grandlivre master key')`, `hashtext(encode(${fingerprint}, 'hex'))`] as const

/** Lets `listProcesses` see, as long as this session lives, that its process has these keys. */
export async function lockKeys(client: ClientBase, fingerprints: readonly Buffer[]): Promise<void> {
  await client.query(
    `select pg_advisory_lock_shared(${keyLock('fingerprint').join()}) from unnest($1::bytea[]) as fingerprint`,
    [fingerprints],
  )
}

/** A live process of the service: each has one session of a dispatcher, which names it. */
export interface ServiceProcess {
  /** Host and process, `web-1:4711`; null for a version that gives none. */
  name: string | null
  version: string | null
  /** Null on this machine, and where the login of the reader may not see it. */
  address: string | null
  /** The process of PostgreSQL that serves it. */
  connection: string
  /** Since when it is connected; null where the login of the reader may not see it. */
  connectedAt: string | null
  /** Whether it has all the keys in question. None of a version that knows of no rotation has. */
  hasKeys: boolean
}

/** @param fingerprints of the keys in question */
export function listProcesses(client: ClientBase, fingerprints: readonly Buffer[]) {
  const [classOf, idOf] = keyLock('fingerprint')
  const part = (place: number) => `nullif(split_part(application_name, ' ', ${place}), '')`
  return queryRows<ServiceProcess>(
    client,
    `select ${part(3)} as name, ${part(4)} as version, host(client_addr) as address, pid::text as connection,
       ${utc('backend_start')} as "connectedAt",
       not exists (
         select from unnest($1::bytea[]) as fingerprint where not exists (
           select from pg_locks l
           where l.pid = a.pid and l.locktype = 'advisory' and l.granted and l.objsubid = 2
             and l.classid = ${classOf}::oid and l.objid = ${idOf}::oid)) as "hasKeys"
     from pg_stat_activity a
     where datname = current_database() and application_name like 'grandlivre dispatcher%'
     order by name, pid`,
    [fingerprints],
  )
}

/**
 * Whether any session but those of commands is there: it may be of a process whose session of a dispatcher is to come, or
 * lost at this moment.
 */
export async function seesOurSessions(database: Pool): Promise<boolean> {
  const text = `select from pg_stat_activity
     where datname = current_database() and application_name like 'grandlivre%' and application_name <> 'grandlivre cli'`
  return (await queryCount(database, text)) !== 0
}

/** Its name for staff. */
export function processText({ name, address, connection }: ServiceProcess): string {
  const at = address === null ? '' : `at ${address} `
  return `${name ?? 'of a former version'} ${at}(connection ${connection})`
}
