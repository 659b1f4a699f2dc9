/**
 * Imports a full export in JSON into one folder, entirely or not at all, in memory that does not grow with its entries
 * (docs/spec/imports.md#mad-files).
 *
 * The file is read twice. First what entries refer to: in files of this service that stands before the entries, so the
 * first reading is short; the members may have any order. Then the entries, in the transaction that loads them. After
 * the first problem nothing more is loaded, and the check goes on to find further ones.
 */

import type pg from 'pg'
import { printable } from '../../../packages/terminal/src/printable.ts'
import { addressOf } from '../../formats/items/accounts/address.ts'
import { JsonItems, JsonTextError, pathOf } from '../../formats/mad/read/json-items.ts'
import { FileProblems, problemsMax } from '../../formats/mad/read/problems.ts'
import { rememberLetterings } from '../events.sql.ts'
import { IdSource } from '../ids.ts'
import { ImportRefused } from '../import/import-refused.ts'
import { inImportTransaction } from '../import/import-transaction.ts'
import { fileSize } from '../import/source-file.ts'
import {
  earliestFirst,
  type LoadedLedger,
  type PreparedFolder,
  prepareFolder,
  publishLedger,
  type WholeImportOptions,
} from '../import/whole-folder.ts'
import { createFiledTables } from '../replace/replace.sql.ts'
import { fillFolder, type Replacement, replaceFolder } from '../replace/replace.ts'
import { Books, booksPlaces, entriesPlace, takenPlaces } from './books.ts'
import { setCurrency, thirdPartyIds } from './import-mad.sql.ts'
import {
  type BookTable,
  bookTables,
  type EntryTable,
  entryTables,
  findTakenId,
  lastId,
  lockKeptIds,
  passIds,
} from './kept-ids.sql.ts'
import { keptIds, loadBooks, newIds } from './load-books.ts'
import { type EntryCounts, MadEntryLoader } from './load-entries.ts'
import { pathOfId, refusingTwice } from './places-of-ids.ts'
import { readItems } from './read-file.ts'
import { createFiledBooks, endBooks, knownBooks, writeBooks } from './replace-books.sql.ts'

/** A folder that is replaced keeps what does not differ. Without one: a new folder. */
export interface MadImportOptions extends WholeImportOptions<MadImported> {
  /** Gives new ids to everything that the folder does not have. Otherwise the ids of the file are kept. */
  renumber?: boolean
}

export interface MadImported extends EntryCounts, LoadedLedger {
  /** What was written, if the folder held a ledger before. `books` counts rows of accounts, journals and so on. */
  replacement: (Replacement & { books: number }) | undefined
  /** Addresses whose full name is not made of their parts. */
  fullNames: number
  hiddenEmployees: number
  /** Exercices whose duration is not that of their days. */
  durations: number
  /** How often members occur that are not of the format, by their path. */
  unknownMembers: ReadonlyMap<string, number>
}

/**
 * @param pool connects as the owner of the tables
 * @throws {ImportRefused} problems in the file, with paths and values; nothing is loaded
 * @throws {Error} for unsuitable options and folders, and ids that are taken; says what to do; nothing is loaded
 */
export async function importMad(pool: pg.Pool, options: MadImportOptions): Promise<MadImported> {
  const bytesTotal = await fileSize(options.file)
  return refusing(async () => {
    const problems = new FileProblems()
    const books = await readBooks(options, bytesTotal, problems)
    const unknown = new Map(problems.unknown)
    return refusingTwice(options.file, () =>
      inImportTransaction(pool, options, (client) => {
        problems.unknown = new Map(unknown)
        return load(client, options, bytesTotal, books)
      }),
    )
  })
}

/** Problems of the text are reported as those of its items are. */
async function refusing<Result>(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    throw error instanceof JsonTextError ? new ImportRefused([error.message], 1, { cause: error }) : error
  }
}

const tablesOfBooks = Object.keys(bookTables) as BookTable[]
const allTables = [...tablesOfBooks, ...entryTables]

function throwIfAny({ found, isFull }: FileProblems): void {
  if (found.length === 0) return
  const lines = found.map(({ path, value, message }) => `${path}${value && ` "${value}"`}: ${message}`)
  throw new ImportRefused(
    isFull ? [...lines, `... the check stopped after ${problemsMax}`] : lines,
    lines.length,
  )
}

async function readBooks(options: MadImportOptions, bytesTotal: number, problems: FileProblems) {
  const books = new Books(problems)
  const items = new JsonItems((place) => takenPlaces.has(place))
  const hasAll = () => problems.isFull || booksPlaces.every((place) => items.complete.has(place))
  const onRead = (bytes: number) => options.onProgress?.({ step: 'reading', bytes, bytesTotal, lines: 0 })
  for await (const batch of readItems(options.file, items, onRead, hasAll))
    for (const item of batch) books.take(item)
  throwIfAny(problems)
  books.check(items.complete)
  throwIfAny(problems)
  return books
}

async function load(
  client: pg.ClientBase,
  options: MadImportOptions,
  bytesTotal: number,
  books: Books,
): Promise<MadImported> {
  const { file, folderId, name, replace = false, renumber = false, timeZone } = options
  if (!renumber) await lockKeptIds(client)
  const ids = new IdSource(client)
  const folder = await prepareFolder(client, ids, { folderId, replace, ...requestedFolder(books, name) })
  const { former } = folder
  const isReplaced = former !== undefined
  if (isReplaced) {
    await rememberLetterings(client, folder, null)
    await createFiledBooks(client)
  }
  const known = renumber && isReplaced ? await knownBooks(client, folder) : []
  const idOf = renumber ? await newIds(ids, books, known) : keptIds
  await loadBooks(client, folder, books, idOf, timeZone, isReplaced)
  let writtenBooks = isReplaced ? await writeBooks(client, folder) : 0
  if (!renumber) await refuseTaken(client, folder, file, books, tablesOfBooks)
  // New ids are given in the tables of a replacement, which also tell which id the file has twice.
  const isCompared = renumber || isReplaced
  if (isCompared) await createFiledTables(client)
  const { schemaId, folderId: id } = folder
  const target = { schemaId, folderId: id, books, idOf, isCompared, isNumbered: !isReplaced }
  const loader = new MadEntryLoader(client, { ...target, thirdParties: await thirdPartyIds(client) })
  await loadEntries(loader, options, bytesTotal, books)
  const counts = await loader.end()
  const written = isReplaced ? await replaceFolder(client, folder, renumber) : undefined
  if (isCompared && !isReplaced) await fillFolder(client)
  if (isReplaced) writtenBooks += await endBooks(client, folder)
  if (!renumber) {
    const last = await lastId(client, folder, allTables)
    if (last !== undefined) await passIds(client, last.id, () => pathOfId(file, books, last))
    await refuseTaken(client, folder, file, books, allTables)
  }
  const [currency] = counts.currencies
  if (folder.created && currency !== undefined && counts.currencies.size === 1)
    await setCurrency(client, folder, currency)
  const periods = [...books.exercices.values()]
  const exercices = earliestFirst(
    periods.map(({ producerId, period: { start, end } }) => ({
      id: idOf('exercices', producerId),
      start,
      end,
    })),
  )
  await publishLedger(client, folder, exercices, counts.filled, isReplaced)
  const { accounts, journals, problems, fullNames, hiddenEmployees, durations } = books
  const sizes = { accounts: accounts.size, journals: journals.size, fullNames, hiddenEmployees, durations }
  const replacement = written && { ...written, books: writtenBooks }
  return { ...folder, ...counts, ...sizes, replacement, exercices, unknownMembers: problems.unknown }
}

function requestedFolder({ folder }: Books, name: string | undefined) {
  const { address, contact, RCS, ...of } = folder!
  return {
    firmName: name ?? of.name,
    folder: {
      name: name ?? of.name,
      reference: of.reference,
      siret: of.SIRET,
      capital: of.capital,
      address: addressOf(address),
      contact,
      rcs: RCS,
    },
  }
}

async function loadEntries(
  loader: MadEntryLoader,
  { file, onProgress }: MadImportOptions,
  bytesTotal: number,
  books: Books,
): Promise<void> {
  const { problems } = books
  // With what is of neither reading, to be counted wherever it stands.
  const items = new JsonItems((place) => !takenPlaces.has(place))
  const onRead = (bytes: number) =>
    onProgress?.({ step: 'loading', bytes, bytesTotal, lines: loader.movements })
  for await (const batch of readItems(file, items, onRead, () => problems.isFull))
    for (const item of batch) {
      if (item.place !== entriesPlace) problems.addUnknown(pathOf(item), [])
      else if (item.index === undefined) problems.add(entriesPlace, [], item.value, 'a list is expected')
      else await loader.add(item)
    }
  if (!items.complete.has(entriesPlace))
    problems.add(entriesPlace, [], undefined, 'missing: a full export has it')
  throwIfAny(problems)
}

/** @throws {Error} naming the first id that a row of another folder has */
async function refuseTaken(
  client: pg.ClientBase,
  folder: PreparedFolder,
  file: string,
  books: Books,
  tables: readonly (BookTable | EntryTable)[],
): Promise<void> {
  const taken = await findTakenId(client, folder, tables)
  if (taken === undefined) return
  const { table, id, folderId, folderName } = taken
  throw new Error(
    `${await pathOfId(file, books, taken)} "${id}": this id is taken in ${table} of folder ${folderId} (${printable(folderName)}). ` +
      `Import with --renumber for new ids`,
  )
}
