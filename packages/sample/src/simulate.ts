/** Corrections in folders of a firm, as a bookkeeper makes them. No entry is ever out of balance. */
import type { ClientBase } from 'pg'
import { publish } from '../../../src/events/publish.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import { IdSource } from '../../../src/ledger/ids.ts'
import { letteringCode } from './made-up/lines.ts'
import type { Random } from './made-up/random.ts'
import {
  addEntryLike,
  correctAmount,
  correctDescription,
  letter,
  pickEntry,
  pickPair,
  renameAccount,
  validateDraft,
} from './simulate.sql.ts'

type Correction = (client: ClientBase, key: FolderKey, random: Random) => Promise<string | undefined>

/** By what they say. Each gives the id of what it touched, or undefined where the folder has nothing of the kind. */
const corrections: Record<string, Correction> = {
  'description corrected in entry': correctDescription,
  'amount corrected in entry': (client, key, random) => correctAmount(client, key, random.integer(1, 99_999)),
  'draft validated: entry': validateDraft,
  'draft added: entry': addEntry,
  'account renamed:': renameAccount,
  'lettering set on movement': setLettering,
}

/**
 * Makes one correction, of a kind at random, in the client's transaction.
 * @returns what was done, in words; undefined if the folder has nothing that could be corrected
 */
export async function correct(
  client: ClientBase,
  key: FolderKey,
  random: Random,
): Promise<string | undefined> {
  const kinds = Object.entries(corrections)
  const first = random.integer(0, kinds.length - 1)
  for (const [what, make] of [...kinds.slice(first), ...kinds.slice(0, first)]) {
    const id = await make(client, key, random)
    if (id !== undefined) return `${what} ${id}`
  }
  return undefined
}

async function addEntry(client: ClientBase, key: FolderKey) {
  const entry = await pickEntry(client, key)
  if (!entry) return undefined
  const ids = new IdSource(client)
  await ids.reserve(1 + entry.movements)
  const fresh = Array.from({ length: 1 + entry.movements }, () => ids.next())
  const id = await addEntryLike(client, key, entry.id, fresh)
  const { schemaId, folderId } = key
  const data = { id: fresh[0]! }
  await publish(client, schemaId, [{ name: 'accountingLineEntry', operation: 'CREATE', folderId, data }])
  return id
}

async function setLettering(client: ClientBase, key: FolderKey) {
  const pair = await pickPair(client, key)
  if (!pair) return undefined
  const used = new Set(pair.codes)
  let index = used.size
  while (used.has(letteringCode(index))) index++
  const state = pair.equal ? 'complete' : 'partial'
  return letter(client, key, { ids: pair.ids, state, code: letteringCode(index) })
}
