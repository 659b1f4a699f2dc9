/**
 * The key that encrypts secrets: the setting MASTER_KEY, or a key generated once and kept in `dataDir/master.key`, readable
 * only by its owner. A secret stored under another key can be read by no process that has the right one, so the database
 * knows the fingerprint of its key, and a process with another key is refused before anything is changed. While keys are
 * rotated (rotation.sql.ts), a process has two: it reads under both, and writes under the one that the database names.
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
 * The keys, once the database has admitted them: MASTER_KEY first.
 * @throws {Error} if there is none, or its file holds anything else; says what to do
 */
export async function loadMasterKeys(config: KeySettings): Promise<MasterKeys> {
  const keys = keysOf(config, await readMasterKey(config))
  if (keys === undefined) throw refusal(config, [], {})
  return keys
}

/**
 * Returns the check for `openDatabase`. A key file is made for a database that has neither a fingerprint nor secrets.
 * @param adopts whether the database takes the fingerprint of this key, if it has none and the newest secret opens, if
 *   there is one. A command does not: it may run in a job with another key, and any secret that it stores shows its key
 * @throws {Error} before any database is opened, if the key file holds no key, or both keys are the same. The check throws
 *   if the database has another key, or goes to one that is not here. All say what to do
 */
export async function keyCheck(
  config: KeySettings,
  { adopts = true } = {},
): Promise<(client: ClientBase) => Promise<void>> {
  keysOf(config, await readMasterKey(config))
  return async (client) => {
    const stored = await readStoredKey(client)
    // Such a database is asked again once it is migrated, before that is committed.
    if (stored === undefined) return
    const { newestSecret } = stored
    const isNew = !stored.fingerprint && newestSecret === null
    const key = (await readMasterKey(config)) ?? (isNew ? await makeKeyFile(fileOf(config)) : undefined)
    const keys = keysOf(config, key)
    const ours = keys?.find((each) => !newestSecret || decryptWith(newestSecret, each) !== undefined)
    if (keys === undefined || ours === undefined) throw refusal(config, keys ?? [], stored)
    // A command with two keys rotates them, and writers have to know which of the two to use.
    const isAdopting = stored.fingerprint === null && stored.adopts && (adopts || keys.length > 1)
    const fingerprint = isAdopting ? await adoptFingerprint(client, fingerprintOf(ours)) : stored.fingerprint
    const named = { ...stored, fingerprint }
    if (!holdsAll(keys, named)) throw refusal(config, keys, named)
  }
}

/** For /readyz. @throws {AppError} ERR-UNAVAILABLE if the database has adopted another key, or goes to one */
export async function checkAdopted(database: Pool, masterKeys: MasterKeys): Promise<void> {
  const named = await readFingerprints(database)
  if (holdsAll(masterKeys, named)) return
  if (named.fingerprint && !holds(masterKeys, named.fingerprint)) throw otherKey()
  const missing = 'rotate-key goes to a key that this process does not have'
  throw new AppError('ERR-UNAVAILABLE', { message: missing, missing })
}

/** The key that signs links to files, derived from the key that the database names. A single key needs no query. */
export async function linkKey(database: Pool, masterKeys: MasterKeys): Promise<string> {
  if (masterKeys.length === 1) return signingKeyOf(masterKeys[0])
  return signingKeyOf(keyNamed((await readFingerprints(database)).fingerprint, masterKeys))
}

/**
 * The key to encrypt or sign with until the end of the transaction: what is stored under it is not missed by `rotate-key`.
 * @throws {AppError} ERR-UNAVAILABLE if the database names another key
 */
export async function sealingKey(client: ClientBase, masterKeys: MasterKeys): Promise<Buffer> {
  return keyNamed(await readSealingKey(client), masterKeys)
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

/** Undefined without a key. @throws {Error} if both are the same */
function keysOf({ formerMasterKey }: KeySettings, key: Buffer | undefined): MasterKeys | undefined {
  if (key === undefined) return undefined
  if (formerMasterKey?.equals(key))
    throw new Error('FORMER_MASTER_KEY is the same key as MASTER_KEY: it must be the one before, or not set')
  return formerMasterKey ? [key, formerMasterKey] : [key]
}

/** Undefined if it is not set and there is no file. */
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

/** Two processes that start at the same time must get the same key, and must never read a partial file. */
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
  /** Of the key that `rotate-key` goes to, until it is done. */
  nextFingerprint: Buffer | null
}

/**
 * What the database says of its key. `adopts`: whether it can adopt one, not before the migration for it. `newestSecret`:
 * the encrypted secret that was stored last; null if there is none, or a fingerprint.
 * @returns undefined where there are no secrets yet, or by the first migrations of all, which the owner alone meets
 */
export async function readStoredKey(client: ClientBase) {
  const text = `select to_regprocedure('grandlivre.master_key_standing()') is not null as adopts,
       to_regclass('grandlivre.signing_secrets') is not null as secrets`
  const known = await queryRow<{ adopts: boolean; secrets: boolean }>(client, text)
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
function adoptFingerprint(client: ClientBase, fingerprint: Buffer) {
  return queryValue<Buffer>(client, 'select grandlivre.adopt_master_key($1)', [fingerprint])
}

/** The fingerprint of the key that encrypts until the end of the transaction. */
function readSealingKey(client: ClientBase) {
  return queryValue<Buffer | null>(client, 'select grandlivre.sealing_key()')
}

/** The lock of one key, as two numbers. @param fingerprint an expression */
const keyLock = (fingerprint: string) =>
  [`hashtext('grandlivre master key')`, `hashtext(encode(${fingerprint}, 'hex'))`] as const

/** Lets `listProcesses` see, as long as this session lives, that its process has these keys. */
export async function lockKeys(client: ClientBase, fingerprints: readonly Buffer[]): Promise<void> {
  const text = `select pg_advisory_lock_shared(${keyLock('fingerprint').join()}) from unnest($1::bytea[]) as fingerprint`
  await client.query(text, [fingerprints])
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
