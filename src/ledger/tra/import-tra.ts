/**
 * Imports a TRA file into one folder, entirely or not at all, in memory that does not grow with its entries
 * (docs/spec/imports.md#tra-files).
 *
 * The file is read once, and its check (formats/tra/check) runs beside the load: a file is imported if `inspect tra`
 * finds no problem in it. Only sums do not matter: entries that do not balance are in real ledgers, and are counted.
 * After the first problem nothing more is loaded, and the check goes on to find further ones.
 */
import type pg from 'pg'
import { printable } from '../../../packages/terminal/src/printable.ts'
import { TraCheck } from '../../formats/tra/check/check.ts'
import { parseTra, type TraLine } from '../../formats/tra/check/parse.ts'
import { TraProblems } from '../../formats/tra/check/problem.ts'
import { layouts } from '../../formats/tra/layouts/layouts.ts'
import { rememberLetterings } from '../events.sql.ts'
import { IdSource } from '../ids.ts'
import type { WrittenCounts } from '../import/entry-writer.ts'
import { ImportRefused } from '../import/import-refused.ts'
import { inImportTransaction } from '../import/import-transaction.ts'
import { fileSize, readSource } from '../import/source-file.ts'
import {
  earliestFirst,
  type LoadedLedger,
  type PreparedFolder,
  prepareFolder,
  publishLedger,
  type WholeImportOptions,
} from '../import/whole-folder.ts'
import { deleteLedger } from '../tenants.sql.ts'
import { type TraEntryCounts, TraEntryLoader } from './load-entries.ts'
import { loadParameters, type TraIds } from './load-parameters.ts'
import { TraParameters } from './parameters.ts'

export interface TraImported extends TraEntryCounts, LoadedLedger {
  /** Entries and shares that do not add up. */
  wrongSums: number
  banksLeftOut: number
  /** Accounts that could not get the number of the file. */
  renumberedAccounts: { filed: string; number: string }[]
  /** Lines with a value that is not read, or not as it is, by record and field. */
  unread: ReadonlyMap<string, number>
}

/** Problems named in a refusal. */
const problemsShown = 20

/**
 * @param pool connects as the owner of the tables
 * @throws {ImportRefused} problems in the file, with lines, columns and values; nothing is loaded
 * @throws {Error} for unsuitable options and folders; says what to do; nothing is loaded
 */
export async function importTra(
  pool: pg.Pool,
  options: WholeImportOptions<TraImported>,
): Promise<TraImported> {
  const bytesTotal = await fileSize(options.file)
  return inImportTransaction(pool, options, (client) => new TraImport(client, options, bytesTotal).run())
}

class TraImport {
  readonly #client: pg.ClientBase
  readonly #options: WholeImportOptions<TraImported>
  readonly #bytesTotal: number
  readonly #ids: IdSource
  readonly #sums = new TraProblems()
  readonly #check = new TraCheck(this.#sums)
  readonly #parameters = new TraParameters(this.#check.problems)
  #folder: PreparedFolder | undefined
  #loadedIds: TraIds | undefined
  #loader: TraEntryLoader | undefined

  constructor(client: pg.ClientBase, options: WholeImportOptions<TraImported>, bytesTotal: number) {
    this.#client = client
    this.#options = options
    this.#bytesTotal = bytesTotal
    this.#ids = new IdSource(client)
  }

  async run(): Promise<TraImported> {
    const { file, onProgress } = this.#options
    const { problems } = this.#check
    const onRead = (bytes: number) =>
      onProgress?.({ step: 'loading', bytes, bytesTotal: this.#bytesTotal, lines: this.#check.lines })
    for await (const lines of parseTra(readSource(file, onRead), problems)) await this.#take(lines)
    this.#check.end()
    if (problems.count === 0 && this.#loader === undefined) await this.#loadParameters()
    if (problems.count > 0) throw refusal(problems)
    return this.#publish(await this.#loader!.end())
  }

  async #take(lines: TraLine[]): Promise<void> {
    const { problems } = this.#check
    await this.#loader?.reserve(lines.length)
    for (const line of lines) {
      this.#check.add(line)
      const isEntry = line.layout === layouts.ENTRY || line.layout === layouts.ANALYTIC
      if (!isEntry && !line.isBare) this.#parameters.add(line)
      if (!isEntry || problems.count > 0) continue
      if (this.#loader === undefined) {
        await this.#loadParameters()
        await this.#loader!.reserve(lines.length)
      }
      this.#loader!.add(line)
    }
    await this.#loader?.flushIfFull()
  }

  /** Before the first entry: parameters precede entries (p. 2), which the check makes sure of. */
  async #loadParameters(): Promise<void> {
    const { folderId, name, replace = false, timeZone } = this.#options
    const parameters = this.#parameters
    const of = parameters.folder
    const folderName = name ?? (of?.name || 'TRA')
    this.#folder = await prepareFolder(this.#client, this.#ids, {
      folderId,
      replace,
      firmName: parameters.firmName || folderName,
      folder: {
        name: folderName,
        siret: of?.siret ?? null,
        ...(of && {
          capital: of.capital,
          address: of.address,
          contact: {
            firstName: null,
            lastName: null,
            phoneNumber: of.phoneNumber,
            mobilePhoneNumber: null,
            mail: of.mail,
          },
          rcs: { producerId: '', name: of.rcsName },
        }),
      },
    })
    const { schemaId, folderId: id, currency, former } = this.#folder
    if (currency !== 'EUR')
      throw new Error(
        `A TRA file holds books in euro, and folder ${id} (${printable(this.#folder.name)}) is kept in ${currency}: ` +
          `omit --folder for a new one`,
      )
    const key = { schemaId, folderId: id }
    if (former !== undefined) {
      await rememberLetterings(this.#client, key, null)
      await deleteLedger(this.#client, key)
    }
    const ids = await loadParameters(this.#client, this.#ids, key, parameters, timeZone)
    this.#loadedIds = ids
    const target = { ...key, ids, now: new Date().toISOString(), timeZone }
    this.#loader = new TraEntryLoader(
      this.#client,
      this.#ids,
      target,
      this.#check.problems,
      parameters.unread,
    )
  }

  async #publish(counts: TraEntryCounts & WrittenCounts): Promise<TraImported> {
    const folder = this.#folder!
    const { accounts, journals, exercices, banksLeftOut } = this.#loadedIds!
    await publishLedger(this.#client, folder, exercices, counts.filled, false)
    return {
      ...folder,
      ...counts,
      accounts: new Set([...accounts.general.values(), ...accounts.thirdParties.values()]).size,
      journals: journals.size,
      exercices: earliestFirst(exercices),
      wrongSums: this.#sums.count,
      banksLeftOut,
      renumberedAccounts: accounts.renumbered,
      unread: this.#parameters.unread.counts,
    }
  }
}

function refusal({ kept, count }: TraProblems): ImportRefused {
  const lines = kept
    .toSorted((one, other) => one.line - other.line || one.column - other.column)
    .slice(0, problemsShown)
    .map(
      ({ line, column, field, value, message }) =>
        `line ${line}, column ${column}${field && `, ${field}`}${value && ` "${value}"`}: ${message}`,
    )
  return new ImportRefused(lines, count)
}
