/**
 * Imports a TRA file into one folder, entirely or not at all, in memory that does not grow with its entries
 * (docs/spec/imports.md#tra-files).
 *
 * The file is read once, and its check (formats/tra/check) runs beside the load. The check is the one of `inspect tra`:
 * a file is imported if that command finds no problem in it. Entries that do not balance are accepted and counted,
 * since real ledgers have them. After the first problem nothing more is loaded, and the check goes on to find further
 * problems.
 */
import type pg from 'pg'
import { printable } from '../../../packages/terminal/src/printable.ts'
import { TraCheck } from '../../formats/tra/check/check.ts'
import { parseTra, problemText, TraProblems } from '../../formats/tra/check/parse.ts'
import { layouts } from '../../formats/tra/layouts.ts'
import { IdSource } from '../ids.ts'
import { EntryWriter } from '../import/entry-writer.ts'
import { endImport, type LedgerRequest, prepareFolder } from '../import/folder-target.ts'
import { ImportRefused } from '../import/import-refused.ts'
import { type ImportOptions, inImportTransaction } from '../import/import-transaction.ts'
import { loadMasterRows, newIds } from '../import/master-data.ts'
import { type ReadBytes, readSource } from '../import/source-file.ts'
import { rememberLetterings } from '../publish-import.sql.ts'
import { deleteLedger } from '../tenants.sql.ts'
import { TraEntries } from './entries.ts'
import { traMasterData } from './master-data.ts'
import { folderOf, ReadParameters } from './parameters.ts'

export type TraImported = Awaited<ReturnType<typeof load>>

/** The most problems that a refusal names. */
const problemsShown = 20

/**
 * @param pool connects as the owner of the tables
 * @throws {ImportRefused} with problems in the file, their lines, columns and values; nothing is loaded
 * @throws {Error} for unsuitable options and folders; the message says what to do; nothing is loaded
 */
export function importTra(pool: pg.Pool, options: LedgerRequest & ImportOptions<TraImported>) {
  return inImportTransaction(pool, options, (client) => load(client, options))
}

async function load(client: pg.ClientBase, options: LedgerRequest) {
  const { file, onProgress } = options
  const sums = new TraProblems()
  const check = new TraCheck(sums)
  const { problems } = check
  const parameters = new ReadParameters(check)
  const onRead = (read: ReadBytes) => onProgress?.({ step: 'loading', ...read, lines: check.lines })
  const readMasterData = () => ({
    ...folderOf(parameters),
    masterData: traMasterData(parameters, options.timeZone),
  })
  let read: ReturnType<typeof readMasterData> | undefined
  let ledger: Awaited<ReturnType<typeof openLedger>> | undefined
  try {
    for await (const lines of parseTra(readSource(file, onRead), problems)) {
      await ledger?.writer.reserve(2 * lines.length)
      for (const line of lines) {
        check.add(line)
        const isEntry = line.layout === layouts.ENTRY || line.layout === layouts.ANALYTIC
        if (!isEntry && !line.isBare) parameters.addUnread(line)
        // Parameters precede entries (p. 2); the check makes sure of it.
        if (isEntry) read ??= readMasterData()
        if (read === undefined || !isEntry || problems.count > 0) continue
        if (ledger === undefined) {
          ledger = await openLedger(client, options, read, parameters)
          await ledger.writer.reserve(2 * lines.length)
        }
        ledger.entries.add(line)
      }
      await ledger?.writer.loadIfFull()
    }
    check.end()
    read ??= readMasterData()
    if (problems.count > 0)
      throw new ImportRefused(problems.sorted().slice(0, problemsShown).map(problemText), problems.count)
    ledger ??= await openLedger(client, options, read, parameters)
    ledger.entries.endMovement()
    await ledger.writer.end()
  } finally {
    await ledger?.writer.settled()
  }
  const { folder, idOf, writer, entries } = ledger
  const { rows, renumberedAccounts, banksLeftOut } = read.masterData
  return {
    ...(await endImport(client, folder, rows, idOf, writer.counts, false)),
    ...{ ...entries.counts, renumberedAccounts, banksLeftOut },
    /** The number of entries and shares that do not add up. */
    wrongSums: sums.count,
    /** The number of lines with a value that the import ignored or changed, by record and field. */
    unread: parameters.unread,
  }
}

/** Prepares the folder, and loads the master data that entries refer to. */
async function openLedger(
  client: pg.ClientBase,
  options: LedgerRequest,
  read: ReturnType<typeof folderOf> & { masterData: ReturnType<typeof traMasterData> },
  parameters: ReadParameters,
) {
  const { masterData } = read
  const ids = new IdSource(client)
  const folder = await prepareFolder(client, ids, options, read.folder, read.firmName)
  const { folderId, name, currency, former } = folder
  if (currency !== 'EUR')
    throw new Error(
      `A TRA file holds books in euro, and folder ${folderId} (${printable(name)}) is kept in ${currency}: ` +
        `omit --folder for a new one`,
    )
  if (former !== undefined) {
    await rememberLetterings(client, folder, null)
    await deleteLedger(client, folder)
  }
  const idOf = await newIds(ids, masterData.rows)
  await loadMasterRows(client, folder, masterData.rows, idOf, false)
  const writer = new EntryWriter(client, { key: folder, ids, isCompared: false, isNumbered: true })
  const entries = new TraEntries({ masterData, idOf, writer, parameters, timeZone: options.timeZone })
  return { folder, idOf, writer, entries }
}
