/**
 * Staff sign in to the console with a key that the command line makes. The database stores the SHA-256 of keys and of
 * sessions, and finds them by it (auth/secrets.ts says why that needs no constant time). Sessions are in the database,
 * so that they outlive a restart, hold in every process, and end with their key.
 */
import type { ClientBase, Pool } from 'pg'
import { limits } from '../../config.ts'
import { makeToken, sha256 } from '../secrets.ts'
import { deleteSession, findKey, findSession, insertKey, insertSession } from './keys.sql.ts'

/** @returns the key, which is stored nowhere; undefined if a key in use has this name */
export async function createConsoleKey(client: ClientBase, name: string): Promise<string | undefined> {
  const key = makeToken('console')
  return (await insertKey(client, name, sha256(key))) ? key : undefined
}

export interface Session {
  /** The text of the cookie, which is stored nowhere. */
  token: string
  /** Name of the key. */
  name: string
}

/** False if the key is unknown or revoked. */
export function isKeyInUse(owner: Pool, key: string): Promise<boolean> {
  return findKey(owner, sha256(key))
}

/** Undefined if the key is unknown or revoked. */
export async function beginSession(client: ClientBase, key: string): Promise<Session | undefined> {
  const token = makeToken('session')
  const hashes = { keyHash: sha256(key), sessionHash: sha256(token) }
  const name = await insertSession(client, { ...hashes, lifeMs: limits.consoleSessionMs })
  return name === undefined ? undefined : { token, name }
}

/** Undefined if the session is unknown, too old, or ended with its key. */
export async function readSession(owner: Pool, token: string): Promise<Session | undefined> {
  const name = await findSession(owner, sha256(token))
  return name === undefined ? undefined : { token, name }
}

export function endSession(client: ClientBase, { token }: Session): Promise<void> {
  return deleteSession(client, sha256(token))
}
