/**
 * `rotate-key` rotates from FORMER_MASTER_KEY to MASTER_KEY while processes run. Each of them has had both keys since
 * before the rotation began. It decrypts with either, and encrypts with the one that the database names.
 *
 * The first step records the new key (`next_key`): from then on, a process or command without both keys is refused.
 * Then every secret is re-encrypted, some blocks of a table at a time. A secret that the new key decrypts is done, so a
 * run that follows a killed one needs no record of it. The last step locks out writers, re-encrypts what they wrote
 * meanwhile, signs the start of the audit again and names the new key. It does all that in one transaction, so that at
 * every moment the key that the database names leads to every secret.
 *
 * An unfinished rotation can be reversed in the same way, with the two keys exchanged.
 */
import type { ClientBase } from 'pg'
import { readStart, updateStartSignature } from '../audit/audit.sql.ts'
import { isSigned, signStart } from '../audit/retention.ts'
import { queryCount, queryRows, queryValue } from '../db/statement.ts'
import { fingerprintOf, listProcesses, nameOfKey, processText, readStoredKey } from './master-key.sql.ts'
import { decryptWith, encrypt } from './secrets.ts'

/** MASTER_KEY and FORMER_MASTER_KEY. */
export type RotatedKeys = readonly [to: Buffer, from: Buffer]

/** Blocks of a table per transaction: some 800 secrets. */
const blocksAtOnce = 16

/** Others have locked or changed secrets that the step re-encrypts. The step was undone and can be repeated. */
export class SecretsInUse extends Error {}

/** Some live processes do not have the new key. The step was undone. */
export class KeyMissing extends Error {}

/**
 * The first step. Runs in a transaction.
 * @returns whether a rotation begins, continues after one that was cut off, or is done already
 * @throws {KeyMissing} then nothing was changed
 */
export async function beginRotation(
  client: ClientBase,
  [to]: RotatedKeys,
): Promise<'begins' | 'goes on' | 'done'> {
  await lockOutWriters(client)
  await checkProcesses(client, to)
  const { fingerprint, nextFingerprint } = (await readStoredKey(client))!
  const isNamed = fingerprint!.equals(fingerprintOf(to))
  if (isNamed) return nextFingerprint ? 'goes on' : 'done'
  return (await writeNextKey(client, fingerprintOf(to))) ? 'begins' : 'goes on'
}

/** Blocks of a table: from `first`, up to but not including `last`. */
interface Step {
  table: SealedTable
  first: number
  last: number
}

/** The steps between the first and the last. Each must run in a transaction of its own. */
export async function* stepsOfRotation(client: ClientBase): AsyncGenerator<Step> {
  for (const table of Object.keys(sealedTables) as SealedTable[]) {
    const blocks = await countBlocks(client, table)
    for (let first = 0; first < blocks; first += blocksAtOnce)
      yield { table, first, last: Math.min(first + blocksAtOnce, blocks) }
  }
}

/**
 * @returns how many secrets it re-encrypted; `left`: how many are still to do, because others have locked their rows;
 *   `unreadable`: the names of secrets that neither key decrypts
 */
export async function reencrypt(client: ClientBase, { table, first, last }: Step, [to, from]: RotatedKeys) {
  const replaced = []
  const unreadable: string[] = []
  for (const { place, sealed, name } of await readSealed(client, table, first, last)) {
    if (decryptWith(sealed, to) !== undefined) continue
    const secret = decryptWith(sealed, from)
    if (secret === undefined) unreadable.push(name)
    else replaced.push({ place, sealed, replacement: encrypt(secret, to) })
  }
  const count = replaced.length === 0 ? 0 : await replaceSealed(client, table, replaced)
  return { count, left: replaced.length - count, unreadable }
}

export type EndOfRotation = Awaited<ReturnType<typeof endRotation>>

/**
 * The last step. Runs in a transaction.
 * @returns how many secrets it re-encrypted, and the names of those that neither key decrypts; `isStartForeign`:
 *   whether the start of the audit was signed with neither key, and so keeps its signature
 * @throws {SecretsInUse}
 * @throws {KeyMissing}
 */
export async function endRotation(client: ClientBase, keys: RotatedKeys) {
  const [to, from] = keys
  await lockOutWriters(client)
  await checkProcesses(client, to)
  const end = { count: 0, unreadable: [] as string[], isStartForeign: false }
  for await (const step of stepsOfRotation(client)) {
    const { count, left, unreadable } = await reencrypt(client, step, keys)
    if (left > 0) throw new SecretsInUse()
    end.count += count
    end.unreadable.push(...unreadable)
  }
  const start = await readStart(client)
  if (start?.signature && !isSigned(start, [to])) {
    end.isStartForeign = !isSigned(start, [from])
    if (!end.isStartForeign) await updateStartSignature(client, signStart(start, start.at!, to))
  }
  await nameKey(client, fingerprintOf(to))
  return end
}

async function checkProcesses(client: ClientBase, to: Buffer): Promise<void> {
  const processes = await listProcesses(client, [fingerprintOf(to)])
  const without = processes.filter(({ hasKeys }) => !hasKeys).map(processText)
  if (without.length === 0) return
  throw new KeyMissing(
    `Processes run without key ${nameOfKey(fingerprintOf(to))} of MASTER_KEY: ${without.join(', ')}. ` +
      'Start each of them with MASTER_KEY and FORMER_MASTER_KEY as this command has them, and repeat it.',
  )
}

/** Where secrets are stored, and how each is named for staff. */
const sealedTables = {
  third_party_secrets: `(select 'partner ' || p.code from grandlivre.third_parties p where p.id = third_party_id)`,
  signing_secrets: `'subscription ' || subscription_id`,
}
type SealedTable = keyof typeof sealedTables

/**
 * Makes writers of secrets, in all processes, wait until the transaction ends (`sealing_key`). Gives up before
 * PostgreSQL would look for a deadlock, because that could end a request instead of this transaction.
 */
async function lockOutWriters(client: ClientBase): Promise<void> {
  await client.query(`set local lock_timeout = '500ms'`)
  await client.query(`select pg_advisory_xact_lock(hashtextextended('grandlivre sealing', 0))`)
}

/** @returns false if the fingerprint was written before */
async function writeNextKey(client: ClientBase, fingerprint: Buffer): Promise<boolean> {
  const text = `insert into grandlivre.next_key as n (fingerprint) values ($1)
     on conflict (one) do update set fingerprint = excluded.fingerprint where n.fingerprint <> excluded.fingerprint`
  return (await queryCount(client, text, [fingerprint])) === 1
}

async function nameKey(client: ClientBase, fingerprint: Buffer): Promise<void> {
  await client.query('update grandlivre.adopted_key set fingerprint = $1', [fingerprint])
  await client.query('delete from grandlivre.next_key')
}

/** How many blocks of 8 KB a table has. */
function countBlocks(client: ClientBase, table: SealedTable) {
  const text = `select (pg_relation_size('grandlivre.${table}') / current_setting('block_size')::integer)::integer`
  return queryValue<number>(client, text)
}

/**
 * Reads the encrypted secrets in blocks of a table, from `first` up to but not including `last`, each with the place of
 * its row.
 */
function readSealed(client: ClientBase, table: SealedTable, first: number, last: number) {
  const text = `select ctid::text as place, secret_encrypted as sealed, ${sealedTables[table]} as name from grandlivre.${table}
     where ctid >= format('(%s,0)', $1::integer)::tid and ctid < format('(%s,0)', $2::integer)::tid
       and secret_encrypted <> ''`
  return queryRows<{ place: string; sealed: Buffer; name: string }>(client, text, [first, last])
}

/**
 * Replaces encrypted secrets with others. Skips rows that others have locked or changed: waiting for them while holding
 * locks could deadlock.
 * @returns how many it replaced
 */
function replaceSealed(
  client: ClientBase,
  table: SealedTable,
  replaced: { place: string; sealed: Buffer; replacement: Buffer }[],
): Promise<number> {
  const text = `with locked as materialized (
       select ctid as place from grandlivre.${table} where ctid = any ($1::tid[]) for no key update skip locked
     )
     update grandlivre.${table} t set secret_encrypted = n.replacement
     from locked join unnest($1::tid[], $2::bytea[], $3::bytea[]) n(place, sealed, replacement) using (place)
     where t.ctid = place and t.secret_encrypted = n.sealed`
  return queryCount(client, text, [
    replaced.map(({ place }) => place),
    replaced.map(({ sealed }) => sealed),
    replaced.map(({ replacement }) => replacement),
  ])
}
