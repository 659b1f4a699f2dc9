/**
 * Staff sign in to the console with a key that the command line creates. The database stores the SHA-256 of keys and of
 * sessions, and looks them up by it (secrets.ts explains why that does not need constant time). Sessions are in the
 * database, so that they survive a restart, are valid in every process, and end with their key. All statements run as
 * the owner of the tables.
 */
import type { ClientBase, Pool } from 'pg'
import { limits } from '../config.ts'
import { queryCount, queryRows, queryValue } from '../db/statement.ts'
import { makeToken, sha256 } from './secrets.ts'

/** @returns the key, which is not stored anywhere; undefined if a key in use has this name */
export async function createConsoleKey(client: ClientBase, name: string): Promise<string | undefined> {
  const key = makeToken('console')
  const text = `insert into console_keys (name, key_hash) values ($1, $2)
     on conflict (name) where revoked_at is null do nothing`
  return (await queryCount(client, text, [name, sha256(key)])) === 1 ? key : undefined
}

export interface ListedKey {
  name: string
  createdAt: Date
  usedAt: Date | null
  revokedAt: Date | null
}

/** Lists the keys, newest first. */
export function listConsoleKeys(client: ClientBase) {
  const text = `select name, created_at as "createdAt", used_at as "usedAt", revoked_at as "revokedAt"
     from console_keys order by id desc`
  return queryRows<ListedKey>(client, text)
}

/** Revokes a key and ends its sessions. Returns false if no key in use has this name. */
export async function revokeConsoleKey(client: ClientBase, name: string): Promise<boolean> {
  const text = `with revoked as (
       update console_keys set revoked_at = now() where name = $1 and revoked_at is null returning id
     ), ended as (
       delete from console_sessions where key_id in (select id from revoked)
     )
     select from revoked`
  return (await queryCount(client, text, [name])) === 1
}

/** Returns false if the key is unknown or revoked. Runs outside a transaction. */
export async function isKeyInUse(owner: Pool, key: string): Promise<boolean> {
  const text = 'select from console_keys where key_hash = $1 and revoked_at is null'
  return (await queryCount(owner, text, [sha256(key)])) === 1
}

export interface Session {
  /** The text of the cookie, which is not stored anywhere. */
  token: string
  /** Name of the key that began the session. */
  name: string
}

/** Begins a session, and deletes those that have expired. Returns undefined if the key is unknown or revoked. */
export async function beginSession(client: ClientBase, key: string): Promise<Session | undefined> {
  await client.query('delete from console_sessions where expires_at <= clock_timestamp()')
  const token = makeToken('session')
  const text = `with used as (
       update console_keys set used_at = now() where key_hash = $1 and revoked_at is null returning id, name
     ), begun as (
       insert into console_sessions (session_hash, key_id, expires_at)
       select $2, id, clock_timestamp() + $3 * interval '1 millisecond' from used
     )
     select name from used`
  const values = [sha256(key), sha256(token), limits.consoleSessionMs]
  const name = await queryValue<string | undefined>(client, text, values)
  return name === undefined ? undefined : { token, name }
}

/** Returns undefined if the session is unknown, too old, or ended with its key. */
export async function readSession(owner: Pool, token: string): Promise<Session | undefined> {
  const text = `select k.name from console_sessions s join console_keys k on k.id = s.key_id
     where s.session_hash = $1 and s.expires_at > clock_timestamp() and k.revoked_at is null`
  const name = await queryValue<string | undefined>(owner, text, [sha256(token)])
  return name === undefined ? undefined : { token, name }
}

export async function endSession(client: ClientBase, { token }: Session): Promise<void> {
  await client.query('delete from console_sessions where session_hash = $1', [sha256(token)])
}
