/** The parameter records of a TRA file (tra.md, Parameters), from the folder they describe. */

import type { Buffer } from 'node:buffer'
import type pg from 'pg'
import { AppError } from '../../errors.ts'
import type {
  AccountView,
  AxisView,
  ExerciceView,
  FolderView,
  JournalView,
  PaymentView,
  VatCodeView,
} from '../../formats/collection-rows.ts'
import { partyKind } from '../../formats/party-kind.ts'
import { paymentMode } from '../../formats/payment.ts'
import type { FolderKey } from '../../formats/rows.ts'
import {
  caeLine,
  cgnLine,
  createdCgnLine,
  crrLine,
  jalLine,
  ribLine,
  satLine,
} from '../../formats/tra/account-records.ts'
import {
  axesMax,
  devLines,
  etbLine,
  exoLine,
  headerLine,
  mdpLine,
  mdrLine,
  ps1Line,
  ps2Line,
  ps3Line,
  ps5Line,
  regLine,
  tvaLine,
} from '../../formats/tra/folder-records.ts'
import { bareLine } from '../../formats/tra/layouts/fixed-width.ts'
import { layouts, type TraRecord } from '../../formats/tra/layouts/layouts.ts'
import { type CollectiveAccounts, collectiveAccounts } from '../../formats/tra/nature.ts'
import { journalCodes, sectionCodes, vatCodes } from '../../formats/tra/short-codes.ts'
import { UnsupportedByFormat } from '../../formats/unsupported.ts'
import {
  readAccounts,
  readAxes,
  readBanks,
  readExercices,
  readFolder,
  readJournals,
  readPayments,
} from '../../ledger/collections.sql.ts'
import { minuteIn } from '../read/day.ts'
import type { ResolvedSelection } from '../read/movements.sql.ts'
import {
  type AccountNumber,
  findForeignCurrencies,
  readAccountNumbers,
  readCorrespondenceAccounts,
  readKeeping,
  readVatCodes,
} from '../read/tra-file.sql.ts'
import { isWholeFolder, type Selection } from '../selection.ts'

/** What parameters and entry lines are made of, as far as it is kept in memory: a folder has few of each. */
export interface TraFolder {
  selection: Selection
  folder: FolderView
  firmName: string
  accounts: AccountNumber[]
  collectives: CollectiveAccounts
  journals: JournalView[]
  /** In three characters, by id. */
  journalCodes: Map<string, string>
  payments: PaymentView[]
  /** In the order of their ids. */
  axes: AxisView[]
  /** As the file has them, by id. */
  sectionCodes: Map<string, string>
  /** The oldest first. */
  exercices: ExerciceView[]
  vatCodes: VatCodeView[]
  /** What one unit costs in euro, by currency. */
  currencies: Map<string, string>
}

/**
 * @throws {AppError} ERR-FOLDER-NOT-FOUND
 * @throws {UnsupportedByFormat} for books that are not kept in euro
 */
export async function readTraFolder(client: pg.ClientBase, resolved: ResolvedSelection): Promise<TraFolder> {
  const { selection } = resolved
  const folder = await readFolder(client, selection)
  const keeping = await readKeeping(client, selection)
  if (!folder || !keeping) throw new AppError('ERR-FOLDER-NOT-FOUND')
  if (keeping.currency !== 'EUR')
    throw new UnsupportedByFormat(
      `A TRA file holds books in euro, and this folder is kept in ${keeping.currency}`,
    )
  const accounts = await readAccountNumbers(client, selection)
  const journals = await all(readJournals(client, selection))
  const axes = await all(readAxes(client, selection))
  const currencies = await findForeignCurrencies(client, resolved)
  return {
    selection,
    folder,
    firmName: keeping.firmName,
    accounts,
    collectives: collectiveAccounts(accounts),
    journals,
    journalCodes: journalCodes(journals),
    payments: await all(readPayments(client, selection)),
    axes,
    sectionCodes: new Map(axes.slice(0, axesMax).flatMap(({ sections }) => [...sectionCodes(sections)])),
    exercices: await all(readExercices(client, selection, selection.timeZone)),
    vatCodes: await readVatCodes(client, selection),
    currencies: new Map(currencies.map(({ code, rate }) => [code, rate])),
  }
}

async function all<Row>(batches: AsyncIterable<Row[]>): Promise<Row[]> {
  return (await Array.fromAsync(batches)).flat()
}

interface Written {
  client: pg.ClientBase
  of: TraFolder
  /** Epoch milliseconds of the snapshot. */
  now: number
}

type Lines = Iterable<Buffer> | AsyncIterable<Buffer>
type ParameterRecord = Exclude<TraRecord, 'ENTRY' | 'ANALYTIC'>

const linesOf: Record<ParameterRecord, (written: Written) => Lines> = {
  HEADER: ({ of, now }) => [
    headerLine({
      type: isWholeFolder(of.selection) ? 'DOS' : 'JRL',
      generatedAt: minuteIn(of.selection.timeZone, now),
      firmName: of.firmName,
    }),
  ],
  PS1: ({ of }) => [ps1Line(of.folder)],
  PS2: ({ of }) => [ps2Line(lengthsOf(of))],
  PS3: ({ of }) => {
    const opening = of.journals.find(({ type }) => type === 'AN')
    return [ps3Line(opening ? of.journalCodes.get(opening.id)! : null, of.collectives)]
  },
  PS5: ({ of }) => [
    ps5Line({
      conversionLossAccount: accountWithRoot(of, '476'),
      conversionGainAccount: accountWithRoot(of, '477'),
      hasAxes: of.axes.length > 0,
    }),
  ],
  EXO: ({ of }) => of.exercices.map((exercice, i) => exoLine(exercice, i + 1)),
  SSA: () => [],
  ETB: ({ of }) => [etbLine(of.folder)],
  MDP: ({ of }) => distinctModes(of).map(mdpLine),
  MDR: ({ of }) => distinctModes(of).map(mdrLine),
  DEV: ({ of }) => devLines(of.currencies),
  REG: () => [regLine()],
  TVA: ({ of }) => {
    const codes = vatCodes(of.vatCodes)
    return of.vatCodes.map(({ id, rate }) => tvaLine(codes.get(id)!, rate))
  },
  SAT: ({ of }) =>
    of.axes
      .slice(0, axesMax)
      .flatMap(({ sections }, i) =>
        sections.map(({ id, name }) => satLine(of.sectionCodes.get(id)!, name, i + 1)),
      ),
  NSA: () => [],
  SPA: () => [],
  SOU: () => [],
  async *CRR({ client, of }) {
    for (const account of await readCorrespondenceAccounts(client, of.selection)) yield crrLine(account)
  },
  async *CGN({ client, of }) {
    const collectives = [...of.collectives.values()]
    for (const collective of collectives) if (collective.id === null) yield createdCgnLine(collective)
    for await (const account of everyAccount(client, of.selection)) {
      const isCollective = collectives.some(({ id }) => id === account.id)
      if (isCollective || partyKind(account.number) === undefined)
        yield cgnLine(account, isCollective, of.axes.length)
    }
  },
  async *CAE({ client, of }) {
    for await (const account of everyAccount(client, of.selection))
      if (partyKind(account.number) !== undefined) yield caeLine(account, of.collectives)
  },
  JAL: ({ of }) => of.journals.map((journal) => jalLine(journal, of.journalCodes.get(journal.id)!)),
  async *RIB({ client, of }) {
    let rank = 0
    for await (const banks of readBanks(client, of.selection))
      for (const bank of banks) yield ribLine(bank, ++rank)
  },
}

/** In the order of the file. A record that the folder has nothing for is bare in the file of a whole folder (p. 2). */
export async function* parameterLines(written: Written): AsyncGenerator<Buffer> {
  const isWhole = isWholeFolder(written.of.selection)
  for (const [record, lines] of Object.entries(linesOf)) {
    const layout = layouts[record as ParameterRecord]
    let isBare = isWhole && layout.mandatory
    for await (const line of lines(written)) {
      isBare = false
      yield line
    }
    if (isBare) yield bareLine(layout)
  }
}

async function* everyAccount(client: pg.ClientBase, folder: FolderKey): AsyncGenerator<AccountView> {
  for await (const accounts of readAccounts(client, folder)) yield* accounts
}

function lengthsOf(of: TraFolder): Parameters<typeof ps2Line>[0] {
  const numbers = of.accounts.map(({ number }) => number)
  return {
    generalLength: longestOf([
      ...numbers.filter((number) => partyKind(number) === undefined),
      ...[...of.collectives.values()].map(({ number }) => number),
    ]),
    thirdPartyLength: longestOf(numbers.filter((number) => partyKind(number) !== undefined)),
    axes: of.axes.slice(0, axesMax).map(({ sections, defaultSectionId }) => ({
      codeLength: longestOf(sections.map(({ id }) => of.sectionCodes.get(id)!)),
      defaultSectionCode: (defaultSectionId && of.sectionCodes.get(defaultSectionId)) || null,
    })),
    suspenseAccount: accountWithRoot(of, '471'),
  }
}

function longestOf(texts: string[]): number {
  return texts.reduce((most, { length }) => Math.max(most, length), 0)
}

/** The lowest number with that root. */
function accountWithRoot({ accounts }: TraFolder, root: string): string | null {
  const numbers = accounts.map(({ number }) => number).filter((number) => number.startsWith(root))
  return numbers.toSorted()[0] ?? null
}

/** Internal codes, the first of each mode that partners see. */
function distinctModes({ payments }: TraFolder): string[] {
  const shown = payments.map(({ code }) => paymentMode(code).code)
  return payments.map(({ code }) => code).filter((_, i) => shown.indexOf(shown[i]!) === i)
}
