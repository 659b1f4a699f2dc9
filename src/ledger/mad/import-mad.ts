/**
 * Imports a full export in JSON into one folder, entirely or not at all, in memory that does not grow with its entries
 * (docs/spec/imports.md#mad-files).
 *
 * The file is read twice. The first reading takes the master data that entries refer to. Members may have any order,
 * but files of this service have the master data before the entries, so this reading is short. The second takes the
 * entries, in the transaction that loads them. After the first problem nothing more is loaded, and the check goes on to
 * find further problems.
 */
import pg from 'pg'
import { printable } from '../../../packages/terminal/src/printable.ts'
import { folderContent } from '../../formats/items/accounting-folder.ts'
import type { Json } from '../../formats/items/values.ts'
import {
  type FileItem,
  type FileProblems,
  findTextError,
  JsonItems,
  JsonTextError,
  pathOf,
  problemsMax,
} from '../../formats/mad/read-items.ts'
import type { FolderKey } from '../../formats/rows.ts'
import { IdSource } from '../ids.ts'
import { EntryWriter } from '../import/entry-writer.ts'
import { endImport, type LedgerRequest, prepareFolder } from '../import/folder-target.ts'
import { ImportRefused } from '../import/import-refused.ts'
import { type ImportOptions, inImportTransaction } from '../import/import-transaction.ts'
import { type IdTable, identities, keptIds, loadMasterRows, newIds } from '../import/master-data.ts'
import { type ReadBytes, readSource } from '../import/source-file.ts'
import { rememberLetterings } from '../publish-import.sql.ts'
import { createFiledTables } from '../replace/replace.sql.ts'
import { fillFolder, replaceFolder } from '../replace/replace.ts'
import { MadEntries } from './entries.ts'
import * as sql from './import-mad.sql.ts'
import { MadMasterData, masterDataPlaces, placesBesideEntries } from './master-data.ts'

/** Without a folder, a new one is created. In a folder that is replaced, rows that do not differ stay. */
interface MadRequest extends LedgerRequest {
  /** Gives a new id to each row that the folder does not have. Otherwise the ids of the file are kept. */
  renumber?: boolean
}

export type MadImported = Awaited<ReturnType<typeof load>>
export type MadImportOptions = MadRequest & ImportOptions<MadImported>

/**
 * @param pool connects as the owner of the tables
 * @throws {ImportRefused} with problems in the file, their paths and values; nothing is loaded
 * @throws {Error} for unsuitable options and folders, and for ids that are taken; the message says what to do; nothing
 *   is loaded
 */
export async function importMad(pool: pg.Pool, options: MadImportOptions): Promise<MadImported> {
  return refusing(options.file, async () => {
    const masterData = await readMasterData(options)
    const unknown = new Map(masterData.problems.unknown)
    return inImportTransaction(pool, options, (client) => {
      masterData.problems.unknown = new Map(unknown)
      return load(client, options, masterData)
    })
  })
}

function throwIfAny({ lines, isFull }: FileProblems): void {
  const stopped = isFull ? [`... the check stopped after ${problemsMax}`] : []
  if (lines.length > 0) throw new ImportRefused([...lines, ...stopped], lines.length)
}

async function readMasterData({ file, onProgress }: MadRequest): Promise<MadMasterData> {
  const masterData = new MadMasterData()
  const items = new JsonItems((place) => placesBesideEntries.has(place))
  const hasAll = () =>
    masterData.problems.isFull || masterDataPlaces.every((place) => items.complete.has(place))
  const onRead = (read: ReadBytes) => onProgress?.({ step: 'reading', ...read, lines: 0 })
  for await (const batch of readItems(file, items, onRead, hasAll))
    for (const item of batch) masterData.take(item)
  throwIfAny(masterData.problems)
  masterData.check(items.complete)
  throwIfAny(masterData.problems)
  return masterData
}

async function load(client: pg.ClientBase, options: MadRequest, masterData: MadMasterData) {
  const { file, renumber = false, timeZone } = options
  if (!renumber) await sql.lockKeptIds(client)
  const ids = new IdSource(client)
  const folder = await prepareFolder(client, ids, options, folderContent(masterData.folder!))
  const isReplaced = folder.former !== undefined
  if (isReplaced) {
    await rememberLetterings(client, folder, null)
    await sql.createFiledMasterTables(client)
  }
  const rows = masterData.rows(timeZone)
  const known = renumber && isReplaced ? await sql.knownMasterRows(client, folder) : []
  const idOf = renumber ? await newIds(ids, rows, known) : keptIds
  await loadMasterRows(client, folder, rows, idOf, isReplaced)
  let writtenRows = 0
  if (isReplaced) {
    const hidden = masterData.hiddenEmployees.map((id) => idOf('accounts', id))
    await sql.keepEmployees(client, folder, hidden)
    writtenRows = await sql.writeMasterRows(client, folder)
  }
  if (!renumber) await refuseTaken(client, folder, file, masterData, tablesOfMasterData)
  // The tables of a replacement serve to give new ids, and to find an id that the file has twice.
  const isCompared = renumber || isReplaced
  if (isCompared) await createFiledTables(client)
  const writer = new EntryWriter(client, { key: folder, isCompared, isNumbered: !isReplaced })
  const entries = new MadEntries({ masterData, idOf, writer, thirdParties: await sql.thirdPartyIds(client) })
  try {
    await readEntries(entries, writer, options, masterData)
    await writer.end()
  } finally {
    await writer.settled()
  }
  const written = isReplaced ? await replaceFolder(client, folder, renumber) : undefined
  if (isReplaced) writtenRows += await sql.finishMasterRows(client, folder)
  else if (isCompared) await fillFolder(client)
  if (!renumber) {
    const last = await sql.lastId(client, folder, allTables)
    if (last !== undefined) await sql.passIds(client, last.id, () => pathOfId(file, masterData, last))
    await refuseTaken(client, folder, file, masterData, allTables)
  }
  const [currency] = entries.currencies
  if (folder.created && currency !== undefined && entries.currencies.size === 1)
    await sql.setCurrency(client, folder, currency)
  return {
    ...(await endImport(client, folder, rows, idOf, writer.counts, isReplaced)),
    ...{ ...masterData.counts, ...entries.counts, hiddenEmployees: masterData.hiddenEmployees.length },
    /** How often members that are not in the format occur, by path. */
    unknownMembers: masterData.problems.unknown,
    /**
     * Counts of the rows that were written, if the folder held a ledger before. `books` counts rows of accounts,
     * journals and so on.
     */
    replacement: written && { ...written, books: writtenRows },
  }
}

const tablesOfMasterData = Object.keys(identities) as IdTable[]
const allTables = [...tablesOfMasterData, 'entries', 'movements'] as const

async function readEntries(
  entries: MadEntries,
  writer: EntryWriter,
  { file, onProgress }: MadRequest,
  { problems }: MadMasterData,
): Promise<void> {
  // Also takes items that neither reading uses, so that they are counted.
  const items = new JsonItems((place) => !placesBesideEntries.has(place))
  const onRead = (read: ReadBytes) =>
    onProgress?.({ step: 'loading', ...read, lines: writer.counts.movements })
  for await (const batch of readItems(file, items, onRead, () => problems.isFull))
    for (const item of batch) {
      if (item.place !== entriesPlace) problems.addUnknown(pathOf(item))
      else if (item.index === undefined) problems.add(entriesPlace, item.value, 'a list is expected')
      else await entries.add(item)
    }
  if (!items.complete.has(entriesPlace))
    problems.add(entriesPlace, undefined, 'missing: a full export has it')
  throwIfAny(problems)
}

/** @throws {Error} naming the first id that a row of another folder has, too */
async function refuseTaken(
  client: pg.ClientBase,
  key: FolderKey,
  file: string,
  masterData: MadMasterData,
  tables: readonly sql.IdOfTable['table'][],
): Promise<void> {
  const taken = await sql.findTakenId(client, key, tables)
  if (taken === undefined) return
  const { table, id, folderId, folderName } = taken
  throw new Error(
    `${await pathOfId(file, masterData, taken)} "${id}": this id is taken in ${table} of folder ${folderId} (${printable(folderName)}). ` +
      `Import with --renumber for new ids`,
  )
}

const entriesPlace = 'data.entries'

/**
 * Reads the items at the wanted places, in batches of one chunk. Ends early once `isEnough` is true.
 * @throws {JsonTextError} for text that is not JSON, with line, column and the item that it belongs to
 */
async function* readItems(
  file: string,
  items: JsonItems,
  onRead: (read: ReadBytes) => void,
  isEnough: () => boolean = () => false,
): AsyncGenerator<FileItem[]> {
  for await (const text of decoded(file, onRead)) {
    yield await itemsIn(file, items, text)
    if (isEnough()) return
  }
  items.end()
}

async function itemsIn(file: string, items: JsonItems, text: string): Promise<FileItem[]> {
  try {
    return items.add(text)
  } catch (cause) {
    if (cause instanceof JsonTextError) throw cause
    const place = await findTextError(decoded(file, () => {}))
    throw new JsonTextError(`${place ?? items.path}: not JSON`, { cause })
  }
}

async function* decoded(file: string, onRead: (read: ReadBytes) => void): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let from = 0
  const decode = (bytes?: Uint8Array) => {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined })
    } catch (cause) {
      const to = from + (bytes?.length ?? 0)
      throw new JsonTextError(`the file is not UTF-8: see bytes ${from} to ${to}`, { cause })
    }
  }
  for await (const bytes of readSource(file, onRead)) {
    yield decode(bytes)
    from += bytes.length
  }
  decode()
}

/**
 * The path of an id, such as `data.accounts[3].producerId`. For an entry or a movement, it reads the file once more.
 */
async function pathOfId(
  file: string,
  masterData: MadMasterData,
  { table, id }: sql.IdOfTable,
): Promise<string> {
  if (table !== 'entries' && table !== 'movements') return masterData.pathOfId(table, id)
  return (await pathsOfId(file, table, id))[0]!
}

/**
 * Runs an import. Errors in the JSON text, and ids that two entries or movements have, are reported like other
 * problems of the file.
 */
async function refusing<Result>(file: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (cause) {
    if (cause instanceof JsonTextError) throw new ImportRefused([cause.message], 1, { cause })
    // Only entries and movements get here: the ids of master data are checked before they are loaded.
    const { constraint = '', detail = '' } = cause instanceof pg.DatabaseError ? cause : {}
    const [, table] =
      /^(?:filed_)?(entries|movements)_(?:pkey|schema_id_folder_id_id_key)$/.exec(constraint) ?? []
    const [, id] = /(\d+)\) already exists/.exec(detail) ?? []
    if (table === undefined || id === undefined) throw cause
    const [first, second] = await pathsOfId(file, table, id)
    throw new ImportRefused([`${second} "${id}": ${first} is the same`], 1, { cause })
  }
}

/**
 * The paths of the first two items with this id. The search ends there, because what follows may not be a valid entry.
 */
async function pathsOfId(file: string, table: string, id: string): Promise<string[]> {
  const paths: string[] = []
  for await (const batch of readItems(file, new JsonItems((place) => place === entriesPlace), () => {}))
    for (const { index, value } of batch) {
      // An entry that was already checked.
      const { producerId, movements } = value as unknown as FileIds
      const path = `${entriesPlace}[${index}]`
      if (table === 'entries' && producerId === id) paths.push(`${path}.producerId`)
      if (table === 'movements')
        for (const [i, movement] of movements.entries())
          if (movement.producerId === id) paths.push(`${path}.movements[${i}].producerId`)
      if (paths.length >= 2) return paths
    }
  return paths
}

interface FileIds {
  producerId: Json
  movements: { producerId: Json }[]
}
