/**
 * The key that encrypts secrets: the setting MASTER_KEY, or a key that is generated once and kept in
 * `dataDir/master.key`, readable only by its owner. If one process stored secrets under a wrong key, the others could
 * not read them. So the database knows the fingerprint of its key, and a process with another key is refused before it
 * changes anything. While keys are rotated (rotation.sql.ts), a process has two keys: it decrypts with either, and
 * encrypts with the one that the database names.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClientBase, Pool } from 'pg'
import type { Config } from '../config.ts'
import { utc } from '../db/literal.ts'
import { lookUp, queryCount, queryRow, queryRows, queryValue } from '../db/statement.ts'
import { AppError } from '../errors.ts'
import { signingKeyOf } from '../store/store.ts'
import { decryptWith, type MasterKeys } from './secrets.ts'

type KeySettings = Pick<Config, 'masterKey' | 'dataDir'> & Partial<Pick<Config, 'formerMasterKey'>>

/**
 * Returns the keys, MASTER_KEY first, once the database has admitted them.
 * @throws {Error} if there is no key, or the key file contains anything else; the message says what to do
 */
export async function loadMasterKeys(config: KeySettings): Promise<MasterKeys> {
  const keys = keysOf(config, await readMasterKey(config))
  if (keys === undefined) throw refusal(config, [], {})
  return keys
}

/**
 * Returns the check for `openDatabase`. Creates a key file if the database has neither a fingerprint nor secrets.
 * @param adopts whether a database without a fingerprint adopts this key. If it has secrets, the key must decrypt the
 *   newest one. Commands pass false: a command may run in a job with another key. Any secret that it stores shows its
 *   key
 * @throws {Error} before any database is opened, if the key file contains no key or both keys are the same. The check
 *   throws if the database has another key, or is being rotated to a key that this process lacks. All messages say what
 *   to do
 */
export async function keyCheck(
  config: KeySettings,
  { adopts = true } = {},
): Promise<(client: ClientBase) => Promise<void>> {
  keysOf(config, await readMasterKey(config))
  return async (client) => {
    const stored = await readStoredKey(client)
    // A database without tables of secrets is checked again at the end of its migration, before the commit.
    if (stored === undefined) return
    const { newestSecret } = stored
    const isNew = !stored.fingerprint && newestSecret === null
    const key = (await readMasterKey(config)) ?? (isNew ? await makeKeyFile(fileOf(config)) : undefined)
    const keys = keysOf(config, key)
    const ours = keys?.find((each) => !newestSecret || decryptWith(newestSecret, each) !== undefined)
    if (keys === undefined || ours === undefined) throw refusal(config, keys ?? [], stored)
    // A command with two keys rotates them; writers then have to know which of the two to use.
    const isAdopting = stored.fingerprint === null && stored.adopts && (adopts || keys.length > 1)
    const fingerprint = isAdopting ? await adoptFingerprint(client, fingerprintOf(ours)) : stored.fingerprint
    const named = { ...stored, fingerprint }
    if (!holdsAll(keys, named)) throw refusal(config, keys, named)
  }
}

/** For /readyz. @throws {AppError} ERR-UNAVAILABLE if the database has another key, or is being rotated to another */
export async function checkAdopted(database: Pool, masterKeys: MasterKeys): Promise<void> {
  const named = await readFingerprints(database)
  if (holdsAll(masterKeys, named)) return
  if (named.fingerprint && !holds(masterKeys, named.fingerprint)) throw otherKey()
  const missing = 'rotate-key goes to a key that this process does not have'
  throw new AppError('ERR-UNAVAILABLE', { message: missing, missing })
}

/**
 * Returns the key that signs links to files. It is derived from the key that the database names. A single key needs no
 * query.
 */
export async function linkKey(database: Pool, masterKeys: MasterKeys): Promise<string> {
  if (masterKeys.length === 1) return signingKeyOf(masterKeys[0])
  return signingKeyOf(keyNamed((await readFingerprints(database)).fingerprint, masterKeys))
}

/**
 * Returns the key to encrypt or sign with until the end of the transaction. `rotate-key` finds everything that is
 * stored under it.
 * @throws {AppError} ERR-UNAVAILABLE if the database names another key
 */
export async function sealingKey(client: ClientBase, masterKeys: MasterKeys): Promise<Buffer> {
  const named = await queryValue<Buffer | null>(client, 'select grandlivre.sealing_key()')
  return keyNamed(named, masterKeys)
}

export function fingerprintOf(key: Buffer): Buffer {
  return createHmac('sha256', key).update('grandlivre master key').digest()
}

/** The first digits of a fingerprint, which identify a key without revealing it. */
export function nameOfKey(fingerprint: Buffer): string {
  return fingerprint.toString('hex', 0, 4)
}

function keyNamed(fingerprint: Buffer | null, masterKeys: MasterKeys): Buffer {
  const key = fingerprint ? holds(masterKeys, fingerprint) : masterKeys[0]
  if (key === undefined) throw otherKey()
  return key
}

function holds(keys: readonly Buffer[], fingerprint: Buffer): Buffer | undefined {
  return keys.find((key) => fingerprintOf(key).equals(fingerprint))
}

function holdsAll(keys: readonly Buffer[], { fingerprint, nextFingerprint }: Fingerprints): boolean {
  return [fingerprint, nextFingerprint].every((named) => !named || holds(keys, named))
}

function otherKey(): AppError {
  return new AppError('ERR-UNAVAILABLE', {
    message: 'The database has adopted another MASTER_KEY than that of this process',
    missing: 'its MASTER_KEY is not that of this process',
  })
}

function refusal(
  config: KeySettings,
  keys: readonly Buffer[],
  { fingerprint, nextFingerprint }: Partial<Fingerprints>,
): Error {
  const path = fileOf(config)
  const setting = config.masterKey ? 'MASTER_KEY' : path
  const given = config.formerMasterKey ? `${setting} and FORMER_MASTER_KEY` : setting
  const names = keys.map((key) => nameOfKey(fingerprintOf(key))).join(' and ')
  const here = `${given} ${keys.length > 1 ? 'hold keys' : 'holds key'} ${names}`
  if (fingerprint && nextFingerprint && (holds(keys, fingerprint) ?? holds(keys, nextFingerprint)))
    return new Error(
      `rotate-key goes from key ${nameOfKey(fingerprint)} to key ${nameOfKey(nextFingerprint)}, and ${here}. ` +
        'Nothing was changed. Set MASTER_KEY to the new key and FORMER_MASTER_KEY to the one before, until ' +
        'rotate-key is done.',
    )
  const what =
    keys.length === 0
      ? `${path} is missing, and the secrets of this database were stored under the key that it held`
      : `The secrets of this database were stored under another key than that of ${given}`
  const named =
    fingerprint && keys.length > 0 ? ` The database names key ${nameOfKey(fingerprint)}; ${here}.` : ''
  return new Error(
    `${what}. Nothing was changed.${named} ` +
      (config.masterKey
        ? 'Set MASTER_KEY to the former key, as it was kept beside the backups, or correct the address of the database.'
        : 'Put the former file back, or set MASTER_KEY to the key that it held.') +
      (keys.length === 1 ? ' Where keys are being rotated, set FORMER_MASTER_KEY to the one before.' : ''),
  )
}

function fileOf({ dataDir }: KeySettings): string {
  return join(dataDir, 'master.key')
}

/** Returns undefined if there is no key. @throws {Error} if both keys are the same */
function keysOf({ formerMasterKey }: KeySettings, key: Buffer | undefined): MasterKeys | undefined {
  if (key === undefined) return undefined
  if (formerMasterKey?.equals(key))
    throw new Error('FORMER_MASTER_KEY is the same key as MASTER_KEY: it must be the one before, or not set')
  return formerMasterKey ? [key, formerMasterKey] : [key]
}

/** Returns undefined if the setting is missing and there is no file. */
async function readMasterKey(config: KeySettings): Promise<Buffer | undefined> {
  if (config.masterKey) return config.masterKey
  const path = fileOf(config)
  const kept = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  return kept === undefined ? undefined : keyOf(path, kept)
}

function keyOf(path: string, kept: string): Buffer {
  if (!/^[0-9a-f]{64}\s*$/i.test(kept))
    throw new Error(
      `${path} must hold 64 hexadecimal digits. Restore it, or set MASTER_KEY to the key it held.`,
    )
  return Buffer.from(kept.trim(), 'hex')
}

/**
 * Creates the key file, so that two processes that start at the same time get the same key and never read a partial
 * file.
 */
async function makeKeyFile(path: string): Promise<Buffer> {
  await mkdir(join(path, '..'), { recursive: true })
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  await writeFile(draft, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx' })
  try {
    // Unlike a rename, a link fails if the other process was first.
    await link(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft)
  }
  return keyOf(path, await readFile(path, 'utf8'))
}

interface Fingerprints {
  /** Null until a process has adopted its key. */
  fingerprint: Buffer | null
  /** Fingerprint of the key to which `rotate-key` is rotating; null if no rotation is under way. */
  nextFingerprint: Buffer | null
}

/**
 * Returns what the database knows of its key. `adopts`: whether it can adopt a key; false before the migration that
 * allows that. `newestSecret`: the encrypted secret that was stored last; null if there is none, or if there is a
 * fingerprint.
 * @returns undefined if there are no tables of secrets yet; only the owner meets such a database
 */
export async function readStoredKey(client: ClientBase) {
  const text = `select to_regprocedure('grandlivre.master_key_standing()') is not null as adopts,
       to_regclass('grandlivre.signing_secrets') is not null as secrets`
  const known = await queryRow<{ adopts: boolean; secrets: boolean }>(client, text)
  if (!known?.secrets) return undefined
  const { adopts } = known
  // Selects every column, because a database that is not migrated yet has no next_fingerprint.
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

/** @returns the fingerprint that the database has then: that of the first process that adopted its key */
function adoptFingerprint(client: ClientBase, fingerprint: Buffer) {
  return queryValue<Buffer>(client, 'select grandlivre.adopt_master_key($1)', [fingerprint])
}

/** The lock of one key, as two numbers. @param fingerprint an SQL expression */
const keyLock = (fingerprint: string) =>
  [`hashtext('grandlivre master key')`, `hashtext(encode(${fingerprint}, 'hex'))`] as const

/** Takes locks that show `listProcesses` which keys the process has, for as long as this session lives. */
export async function lockKeys(client: ClientBase, fingerprints: readonly Buffer[]): Promise<void> {
  const text = `select pg_advisory_lock_shared(${keyLock('fingerprint').join()}) from unnest($1::bytea[]) as fingerprint`
  await client.query(text, [fingerprints])
}

/** A live process of the service. Each has one dispatcher session, which bears its name. */
export interface ServiceProcess {
  /** Host and process, `web-1:4711`; null if its version sets no name. */
  name: string | null
  version: string | null
  /** Null if it runs on this machine, or if the reader's login may not see the address. */
  address: string | null
  /** Id of the PostgreSQL process that serves its session. */
  connection: string
  /** When the session connected; null if the reader's login may not see that. */
  connectedAt: string | null
  /** Whether the process has all of the keys in question. False for versions that cannot rotate keys. */
  hasKeys: boolean
}

/** Lists the live processes of the service. @param fingerprints of the keys that each should have */
export function listProcesses(client: ClientBase, fingerprints: readonly Buffer[]) {
  const [classOf, idOf] = keyLock('fingerprint')
  const part = (place: number) => `nullif(split_part(application_name, ' ', ${place}), '')`
  const text = `select ${part(3)} as name, ${part(4)} as version, host(client_addr) as address, pid::text as connection,
       ${utc('backend_start')} as "connectedAt",
       not exists (
         select from unnest($1::bytea[]) as fingerprint where not exists (
           select from pg_locks l
           where l.pid = a.pid and l.locktype = 'advisory' and l.granted and l.objsubid = 2
             and l.classid = ${classOf}::oid and l.objid = ${idOf}::oid)) as "hasKeys"
     from pg_stat_activity a
     where datname = current_database() and application_name like 'grandlivre dispatcher%'
     order by name, pid`
  return queryRows<ServiceProcess>(client, text, [fingerprints])
}

/**
 * Whether there is any session other than those of commands. Such a session may belong to a process whose dispatcher
 * session is still to come or was lost just now.
 */
export async function seesOurSessions(database: Pool): Promise<boolean> {
  const text = `select from pg_stat_activity
     where datname = current_database() and application_name like 'grandlivre%' and application_name <> 'grandlivre cli'`
  return (await queryCount(database, text)) !== 0
}

/** Returns the name of a process for staff. */
export function processText({ name, address, connection }: ServiceProcess): string {
  const at = address === null ? '' : `at ${address} `
  return `${name ?? 'of a former version'} ${at}(connection ${connection})`
}
