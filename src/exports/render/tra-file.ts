/**
 * The bytes of a TRA file (docs/spec/tra.md): parameter records, rendered from the folder, then entries by two COPY
 * streams. Memory does not grow with the entries, except for the dictionary of what they refer to.
 */

import type pg from 'pg'
import { AppError } from '../../errors.ts'
import { UnsupportedByFormat } from '../../formats/file-formats.ts'
import type { AccountView } from '../../formats/items/accounts/account.ts'
import { partyKind } from '../../formats/items/accounts/parties.ts'
import { paymentMode } from '../../formats/items/payment.ts'
import { longestOf } from '../../formats/text-bytes.ts'
import { letteringCodes, shortCodes } from '../../formats/tra/codes.ts'
import { renderTraDictionary } from '../../formats/tra/dictionary.ts'
import { EntryLines } from '../../formats/tra/entry-lines.ts'
import { bareLine, LineWriter, layouts, type TraRecord } from '../../formats/tra/layouts.ts'
import * as records from '../../formats/tra/records.ts'
import { thirdParties } from '../../formats/tra/third-parties.ts'
import * as collections from '../../ledger/collections.sql.ts'
import type { Chunks } from '../chunks.ts'
import { readFiledAccounts } from '../read/fec-file.sql.ts'
import { findEntrySpans, ofFile, type ResolvedSelection } from '../read/movements.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import {
  findForeignCurrencies,
  findOddLetterings,
  readCorrespondenceAccounts,
  readKeeping,
} from '../read/tra-file.sql.ts'
import { isWholeFolder } from '../selection.ts'
import { minuteIn } from './collections.ts'
import { packPieces } from './framing.ts'
import { type FileOptions, type FileTally, renderSegments } from './render-rows.ts'

export async function* renderTraFile(snapshot: Snapshot, options: FileOptions, tally: FileTally): Chunks {
  const { first, second } = snapshot
  const { selection, now, withEmployees, buffer } = options
  const resolved = ofFile(selection)
  // Uses the second connection for a tenth of a second, while the first reads the parameters.
  const survey = surveyEntries(second, resolved)
  // A rejection is handled at the `await` below, and ignored if the parameters fail first.
  survey.catch(() => {})
  const books = await readTraFolder(first, resolved)
  tally.axesLeftOut = books.axes.slice(records.axesMax).map(({ code }) => code)
  yield* packPieces(parameterLines({ client: first, books, now, withEmployees }), buffer)
  const { spans, letterings } = await survey
  const lines = new EntryLines(renderTraDictionary(books, letterings))
  yield* renderSegments(snapshot, resolved, spans, lines, { buffer, tally })
}

async function surveyEntries(client: pg.ClientBase, resolved: ResolvedSelection) {
  const spans = await findEntrySpans(client, resolved)
  const odd = await findOddLetterings(client, resolved.selection)
  const letterings = new Map(odd.map(({ accountId, codes }) => [Number(accountId), letteringCodes(codes)]))
  return { spans, letterings }
}

/**
 * Reads the rows from which parameter records and entry lines are made. They are kept in memory, because a folder has
 * few of them.
 * @throws {AppError} ERR-FOLDER-NOT-FOUND
 * @throws {UnsupportedByFormat} if the books are not kept in euro
 */
async function readTraFolder(client: pg.ClientBase, resolved: ResolvedSelection) {
  const { selection } = resolved
  const folder = await collections.readFolderView(client, selection)
  const [keeping] = await readKeeping(client, selection)
  if (!folder || !keeping) throw new AppError('ERR-FOLDER-NOT-FOUND')
  if (keeping.currency !== 'EUR')
    throw new UnsupportedByFormat(
      `A TRA file holds books in euro, and this folder is kept in ${keeping.currency}`,
    )
  const accounts = await readFiledAccounts(client, selection)
  const journals = await all(collections.readJournals(client, selection))
  const axes = await all(collections.readAxes(client, selection))
  const currencies = await findForeignCurrencies(client, resolved)
  return {
    selection,
    folder,
    firmName: keeping.firmName,
    accounts,
    parties: thirdParties(accounts),
    journals,
    /** Codes of three characters, by id of the journal. */
    journalCodes: shortCodes(journals, 'JAL'),
    payments: await all(collections.readPayments(client, selection)),
    /** In the order of their ids. */
    axes,
    /** The codes in the file, by id of the section. */
    sectionCodes: new Map(
      axes.slice(0, records.axesMax).flatMap(({ sections }) => [...shortCodes(sections, 'SAT')]),
    ),
    /** Oldest first. */
    exercices: await all(collections.readExercices(client, selection, selection.timeZone)),
    vatCodes: await all(collections.readVats(client, selection)),
    /** Price of one unit in euro, by currency. */
    currencies: new Map(currencies.map(({ code, rate }) => [code, rate])),
  }
}

type TraFolder = Awaited<ReturnType<typeof readTraFolder>>

async function all<Row>(batches: AsyncIterable<Row[]>): Promise<Row[]> {
  return (await Array.fromAsync(batches)).flat()
}

interface ParameterSource {
  client: pg.ClientBase
  books: TraFolder
  /** Epoch milliseconds of the snapshot. */
  now: number
  withEmployees: boolean
}

type Lines = Iterable<Buffer> | AsyncIterable<Buffer>
type ParameterRecord = Exclude<TraRecord, 'ENTRY' | 'ANALYTIC'>

const recordLines: Record<ParameterRecord, (source: ParameterSource) => Lines> = {
  HEADER: ({ books, now }) => [
    records.headerLine(
      isWholeFolder(books.selection) ? 'DOS' : 'JRL',
      minuteIn(books.selection.timeZone, now),
      books.firmName,
    ),
  ],
  PS1: ({ books }) => [records.ps1Line(books.folder)],
  PS2: ({ books }) => [records.ps2Line(lengthsOf(books), axesOf(books), accountWithRoot(books, '471'))],
  PS3: ({ books }) => {
    const opening = books.journals.find(({ type }) => type === 'AN')
    return [records.ps3Line(opening ? books.journalCodes.get(opening.id)! : null, books.parties.ofRoots)]
  },
  PS5: ({ books }) => [
    records.ps5Line(accountWithRoot(books, '476'), accountWithRoot(books, '477'), books.axes.length > 0),
  ],
  EXO: ({ books }) => books.exercices.map((exercice, i) => records.exoLine(exercice, i + 1)),
  SSA: () => [],
  ETB: ({ books }) => [records.etbLine(books.folder)],
  MDP: ({ books }) => distinctModes(books).map(records.mdpLine),
  MDR: ({ books }) => distinctModes(books).map(records.mdrLine),
  DEV: ({ books }) => records.devLines(books.currencies),
  REG: () => [new LineWriter(layouts.REG).line()],
  TVA: ({ books }) => {
    const codes = shortCodes(books.vatCodes, 'TVA')
    return books.vatCodes.map(({ id, rate }) => records.tvaLine(codes.get(id)!, rate))
  },
  SAT: ({ books }) =>
    books.axes
      .slice(0, records.axesMax)
      .flatMap(({ sections }, i) =>
        sections.map(({ id, name }) => records.satLine(books.sectionCodes.get(id)!, name, i + 1)),
      ),
  NSA: () => [],
  SPA: () => [],
  SOU: () => [],
  async *CRR({ client, books }) {
    for (const account of await readCorrespondenceAccounts(client, books.selection))
      yield records.crrLine(account)
  },
  async *CGN(source) {
    const { collectives } = source.books.parties
    for (const collective of collectives) if (collective.id === null) yield records.createdCgnLine(collective)
    for await (const account of everyAccount(source)) {
      const isCollective = collectives.some(({ id }) => id === account.id)
      if (isCollective || partyKind(account.number) === undefined)
        yield records.cgnLine(account, isCollective, source.books.axes.length)
    }
  },
  async *CAE(source) {
    for await (const account of everyAccount(source)) {
      const party = source.books.parties.byAccount.get(account.id)
      if (party !== undefined) yield records.caeLine(account, party)
    }
  },
  JAL: ({ books }) =>
    books.journals.map((journal) => records.jalLine(journal, books.journalCodes.get(journal.id)!)),
  async *RIB({ client, books }) {
    let rank = 0
    for await (const banks of collections.readBanks(client, books.selection))
      for (const bank of banks) yield records.ribLine(bank, ++rank)
  },
}

/**
 * The parameter records, in the order of the file. In the file of a whole folder, a mandatory record without content is
 * written bare (p. 2).
 */
async function* parameterLines(source: ParameterSource): AsyncGenerator<Buffer> {
  const isWhole = isWholeFolder(source.books.selection)
  for (const [record, lines] of Object.entries(recordLines)) {
    const layout = layouts[record as ParameterRecord]
    let isBare = isWhole && layout.mandatory
    for await (const line of lines(source)) {
      isBare = false
      yield line
    }
    if (isBare) yield bareLine(layout)
  }
}

async function* everyAccount({ client, books, withEmployees }: ParameterSource): AsyncGenerator<AccountView> {
  for await (const accounts of collections.readAccounts(client, books.selection, withEmployees))
    yield* accounts
}

function lengthsOf({ accounts, parties }: TraFolder) {
  const general = accounts.filter(({ number }) => partyKind(number) === undefined)
  return {
    general: longestOf([...general, ...parties.collectives].map(({ number }) => number)),
    thirdParty: longestOf([...parties.byAccount.values()].map(({ code }) => code)),
  }
}

function axesOf({ axes, sectionCodes }: TraFolder) {
  return axes.slice(0, records.axesMax).map(({ sections, defaultSectionId }) => ({
    codeLength: longestOf(sections.map(({ id }) => sectionCodes.get(id)!)),
    defaultSectionCode: (defaultSectionId && sectionCodes.get(defaultSectionId)) || null,
  }))
}

/** The lowest account number with this root. */
function accountWithRoot({ accounts }: TraFolder, root: string): string | null {
  const numbers = accounts.map(({ number }) => number).filter((number) => number.startsWith(root))
  return numbers.toSorted()[0] ?? null
}

/** The internal codes of the modes of payment that partners see; of each mode only the first code. */
function distinctModes({ payments }: TraFolder): string[] {
  const shown = payments.map(({ code }) => paymentMode(code).code)
  return payments.map(({ code }) => code).filter((_, i) => shown.indexOf(shown[i]!) === i)
}
