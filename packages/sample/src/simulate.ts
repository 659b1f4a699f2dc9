/**
 * `npm run cli -- simulate` corrects folders of a firm as a bookkeeper would. Entries stay in balance at every moment.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientBase, Pool } from 'pg'
import { idKind } from '../../../src/commands/terminal/kinds.ts'
import type { StaffTerminal } from '../../../src/commands/terminal/terminal.ts'
import { recordAct, withDatabase } from '../../../src/commands/with-database.ts'
import { inTransaction } from '../../../src/db/pool.ts'
import { publish } from '../../../src/events/publish.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import { IdSource } from '../../../src/ledger/ids.ts'
import { command, numberKind } from '../../terminal/src/command.ts'
import { letteringCode } from './made-up/lines.ts'
import { Random } from './made-up/random.ts'
import { foldersMax } from './seed.ts'
import {
  addEntryLike,
  correctAmount,
  correctDescription,
  letter,
  listFirms,
  pickEntry,
  pickFolders,
  pickPair,
  renameAccount,
  validateDraft,
} from './simulate.sql.ts'

export const simulateCommand = command({
  name: 'simulate',
  summary: 'correct the books of some folders of a firm at random, as a bookkeeper does; for made-up ledgers',
  options: {
    folders: {
      value: 'count',
      required: true,
      is: numberKind('a number', 1, foldersMax),
      help: 'in how many folders, one correction each',
    },
    firm: { value: 'id', is: idKind, help: 'the firm; not needed if there is only one' },
    every: {
      value: 'seconds',
      is: numberKind('a number of seconds', 1, 86_400),
      help: 'again and again, in other folders, until Ctrl-C',
    },
  },
  run: (terminal: StaffTerminal, { folders, firm, every }) =>
    withDatabase(terminal, async ({ pool }) => {
      const random = new Random(Date.now())
      const firmId = firm ?? (await inTransaction(pool, async (client) => onlyOf(await listFirms(client))))
      for (;;) {
        for await (const line of correctSome(pool, firmId, folders, random)) terminal.print(line)
        if (every === undefined) return
        await delay(every * 1_000)
      }
    }),
})

/**
 * Makes one correction in each of some folders of a firm, each in its own transaction.
 * @returns a line for each correction, as soon as it is made
 */
export async function* correctSome(
  pool: Pool,
  firmId: string,
  folders: number,
  random: Random,
): AsyncGenerator<string> {
  const keys = await inTransaction(pool, (client) => pickFolders(client, firmId, folders))
  if (keys.length === 0) throw new Error(`There is no firm ${firmId}, or it has no folder`)
  for (const key of keys) {
    const done = await inTransaction(pool, async (client) => {
      const what = await correct(client, key, random)
      if (what !== undefined) await recordAct(client, { act: 'simulate', ...key, details: { what } })
      return what
    })
    yield `Folder ${key.folderId}: ${done ?? 'nothing that could be corrected'}`
  }
}

function onlyOf(firms: { id: string; name: string }[]): string {
  const [only, ...others] = firms
  if (!only) throw new Error('There is no firm: make one with seed --folders')
  if (others.length === 0) return only.id
  const listed = firms.map(({ id, name }) => `\n  ${id}  ${name}`)
  throw new Error(`There are several firms, choose one with --firm:${listed.join('')}`)
}

/**
 * The corrections, by the words in which they are reported. Each returns the id of what it changed, or undefined if the
 * folder has nothing of the kind.
 */
const corrections: Record<
  string,
  (client: ClientBase, key: FolderKey, random: Random) => Promise<string | undefined>
> = {
  'description corrected in entry': (client, key) => correctDescription(client, key),
  'amount corrected in entry': (client, key, random) => correctAmount(client, key, random.integer(1, 99_999)),
  'draft validated: entry': (client, key) => validateDraft(client, key),
  'draft added: entry': addEntry,
  'account renamed:': (client, key) => renameAccount(client, key),
  'lettering set on movement': setLettering,
}

/**
 * Makes one correction of a random kind, in the client's transaction.
 * @returns what was done, in words; undefined if the folder has nothing to correct
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
  return letter(client, key, pair.ids, state, letteringCode(index))
}
