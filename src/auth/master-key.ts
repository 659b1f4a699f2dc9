/**
 * The key that encrypts secrets: the setting MASTER_KEY, or a key generated once and kept in `dataDir/master.key`, readable
 * only by its owner. A secret stored under another key can be read by no process that has the right one, so the database
 * knows the fingerprint of its key, and a process with another key is refused before anything is changed.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClientBase, Pool } from 'pg'
import type { Config } from '../config.ts'
import { AppError } from '../errors.ts'
import { adoptFingerprint, readFingerprint, readKeyStanding } from './master-key.sql.ts'
import { decrypt } from './secrets.ts'

type KeySettings = Pick<Config, 'masterKey' | 'dataDir'>

/**
 * The 32-byte key, once the database has admitted it.
 * @throws {Error} if there is none, or its file holds anything else; says what to do
 */
export async function loadMasterKey(config: KeySettings): Promise<Buffer> {
  const key = await readMasterKey(config)
  if (key === undefined) throw refusal(config, key)
  return key
}

/**
 * Returns the check for `openDatabase`. A key file is made for a database that has neither a fingerprint nor secrets.
 * @param adopts whether the database takes the fingerprint of this key, if it has none and the newest secret opens, if
 *   there is one. A command does not: it may run in a job whose key is a placeholder, and what it stores says enough
 * @throws {Error} before any database is opened, if the key file holds no key. The check throws if the database has
 *   another key. Both say what to do
 */
export async function keyCheck(
  config: KeySettings,
  { adopts = true } = {},
): Promise<(client: ClientBase) => Promise<void>> {
  await readMasterKey(config)
  return async (client) => {
    const standing = await readKeyStanding(client)
    // Such a database is asked again once it is migrated, before that is committed.
    if (standing === undefined) return
    const { fingerprint, newestSecret } = standing
    const isNew = !fingerprint && newestSecret === null
    const key = (await readMasterKey(config)) ?? (isNew ? await makeKeyFile(fileOf(config)) : undefined)
    if (key === undefined || (newestSecret && !opens(newestSecret, key))) throw refusal(config, key)
    const ours = fingerprintOf(key)
    const adopted = fingerprint === null && adopts ? await adoptFingerprint(client, ours) : fingerprint
    if (adopted && !adopted.equals(ours)) throw refusal(config, key)
  }
}

/** For /readyz. @throws {AppError} ERR-UNAVAILABLE if the database has adopted another key */
export async function checkAdopted(database: Pool, key: Buffer): Promise<void> {
  const fingerprint = await readFingerprint(database)
  if (!fingerprint || fingerprint.equals(fingerprintOf(key))) return
  throw new AppError('ERR-UNAVAILABLE', {
    message: 'The database has adopted another MASTER_KEY than that of this process',
    missing: 'its MASTER_KEY is not that of this process',
  })
}

function fingerprintOf(key: Buffer): Buffer {
  return createHmac('sha256', key).update('grandlivre master key').digest()
}

function opens(sealed: Buffer, key: Buffer): boolean {
  try {
    decrypt(sealed, key)
    return true
  } catch {
    return false
  }
}

function refusal(config: KeySettings, key: Buffer | undefined): Error {
  const path = fileOf(config)
  const what =
    key === undefined
      ? `${path} is missing, and the secrets of this database were stored under the key that it held`
      : `The secrets of this database were stored under another key than that of ${config.masterKey ? 'MASTER_KEY' : path}`
  return new Error(
    `${what}. Nothing was changed. ` +
      (config.masterKey
        ? 'Set MASTER_KEY to the former key, as it was kept beside the backups, or correct the address of the database.'
        : `Put the former file back, or set MASTER_KEY to the key that it held.`),
  )
}

function fileOf({ dataDir }: KeySettings): string {
  return join(dataDir, 'master.key')
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
