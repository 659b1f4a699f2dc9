/**
 * `rotate-key`: from FORMER_MASTER_KEY to MASTER_KEY, beside running processes. Each of them has both keys from before it
 * begins, reads under either, and writes under the one that the database names.
 *
 * The first step records where it goes (`next_key`): from then on a process or command without both keys is refused. Then
 * every secret is re-encrypted, some blocks of a table at a time; a secret that opens with the new key is done, so a run
 * that follows a killed one needs no memory of it. The last step locks out writers, re-encrypts what they wrote
 * meanwhile, signs the start of the audit again and names the new key: in one transaction, so that no moment has a secret
 * which the key that the database names does not lead to.
 *
 * A rotation that is not done goes back in the same way: with the two keys exchanged.
 */
import type { ClientBase } from 'pg'
import { readStart, updateStartSignature } from '../../audit/audit.sql.ts'
import { isSigned, signStart } from '../../audit/retention.ts'
import { listProcesses, processText, readStoredKey } from '../master-key.sql.ts'
import { fingerprintOf, nameOfKey } from '../master-key.ts'
import { decryptWith, encrypt } from '../secrets.ts'
import {
  countBlocks,
  lockOutWriters,
  nameKey,
  readSealed,
  replaceSealed,
  type SealedTable,
  sealedTables,
  writeNextKey,
} from './rotation.sql.ts'

/** MASTER_KEY and FORMER_MASTER_KEY. */
export type RotatedKeys = readonly [to: Buffer, from: Buffer]

/** Blocks of a table in one transaction: some 800 secrets. */
const blocksAtOnce = 16

/** Others hold what the step needs. It was undone, and can be repeated. */
export class SecretsInUse extends Error {}

/** Live processes have not the new key. The step was undone. */
export class KeyMissing extends Error {}

/**
 * The first step, in a transaction.
 * @returns whether a rotation begins, goes on after one that was cut off, or is done
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

/** Blocks of a table, from `first` and before `last`. */
interface Step {
  table: SealedTable
  first: number
  last: number
}

/** The steps between the first and the last: each is to run in a transaction of its own. */
export async function* stepsOfRotation(client: ClientBase): AsyncGenerator<Step> {
  for (const table of Object.keys(sealedTables) as SealedTable[]) {
    const blocks = await countBlocks(client, table)
    for (let first = 0; first < blocks; first += blocksAtOnce)
      yield { table, first, last: Math.min(first + blocksAtOnce, blocks) }
  }
}

/**
 * @returns how many secrets it re-encrypted; `left`: how many are in rows that others have locked, and are not done;
 *   `unreadable`: the names of those that open with neither key
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

export interface EndOfRotation {
  /** Secrets that the last step re-encrypted. */
  count: number
  unreadable: string[]
  /** Whether the start of the audit was signed with neither key, and is left so. */
  isStartForeign: boolean
}

/**
 * The last step, in a transaction.
 * @throws {SecretsInUse}
 * @throws {KeyMissing}
 */
export async function endRotation(client: ClientBase, keys: RotatedKeys): Promise<EndOfRotation> {
  const [to, from] = keys
  await lockOutWriters(client)
  await checkProcesses(client, to)
  const end: EndOfRotation = { count: 0, unreadable: [], isStartForeign: false }
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
