/**
 * Reads one answer of a stream of many ledgers (docs/spec/ledgers.md#changes) line by line. Proven lines come out as
 * parts. Any other line ends the reading with an error that names the fault.
 */
import type { Buffer } from 'node:buffer'
import { createHash, type Hash } from 'node:crypto'
import {
  type LedgerTableName,
  ledgerTables,
  type WholeTableName,
  wholeTables,
} from '../../../../contract/src/ledger-tables.ts'
import { ledgerLines, misfitOf } from '../answer-shapes.ts'
import type { EntryRange } from '../changes.ts'
import { clientError, type GrandlivreError } from '../errors.ts'
import { areAscending, areWithin, lastEntryId } from './entry-ranges.ts'
import type { Frame } from './frames.ts'
import type { LedgerPart, WantedLedger } from './ledger-parts.ts'
import { TableRows } from './table-rows.ts'

const tableNames = Object.keys(ledgerTables) as LedgerTableName[]
const kinds = ['ledger', 'table', 'end', 'refused', 'whole', 'rows'] as const

interface Lines {
  ledger: { ledger: string; since: string | null; cursor: string; entries: EntryRange[] }
  table: { table: string; columns: string[] }
  end: { end: string; rows: number; debit: string; credit: string; tables: Record<WholeTableName, string> }
  refused: { refused: string; code: string; message: string }
  whole: { whole: number; refusals: number }
  rows: { rows: number; sha256: string }
}

/** A ledger whose beginning has come, but not its end. */
export interface UnfinishedLedger {
  asked: WantedLedger
  cursor: string
  ranges: EntryRange[]
  /** The SHA-256 of each table that came whole. */
  tables: Partial<Record<WholeTableName, string>>
  table: { rows: TableRows; place: number; hash: Hash; isProven: boolean; isOver: boolean } | undefined
}

export class LedgerAnswer {
  /** Number of ledgers in the request that have ended or been refused. */
  answered = 0
  underWay: UnfinishedLedger | undefined
  isWhole = false
  readonly #asked: readonly WantedLedger[]
  readonly #requestId: string | undefined
  #refusals = 0

  constructor(asked: readonly WantedLedger[], requestId: string | undefined) {
    this.#asked = asked
    this.#requestId = requestId
  }

  /** The error for a line that the service never sends. */
  readonly fail = (what: string): GrandlivreError => {
    const society = this.underWay?.asked.society
    const where = society === undefined ? 'The ledgers' : `Ledger ${society}`
    return clientError('NOT-PROVEN', `${where}: ${what}`, { requestId: this.#requestId })
  }

  /** @throws {GrandlivreError} NOT-PROVEN, or UNEXPECTED-ANSWER for a table that this version does not know */
  take({ rows, json }: Frame): LedgerPart | undefined {
    if (this.isWhole) throw this.fail('the answer went on after the line "whole", which must be its last')
    const { kind, line } = this.#parse(json)
    // The service may refuse a ledger in the middle of its rows, because the next row is too long. The rows before it
    // then have no proof.
    if (rows.length > 0 && kind !== 'rows' && !(kind === 'refused' && this.underWay))
      throw this.fail(`rows came without a proof before the line "${kind}"`)
    if (kind === 'ledger') return this.#begin(line as Lines['ledger'])
    if (kind === 'refused') return this.#refuse(line as Lines['refused'])
    if (kind === 'whole') return this.#end(line as Lines['whole'])
    if (!this.underWay) throw this.fail(`the line "${kind}" came outside of a ledger`)
    if (kind === 'table') return this.#beginTable(this.underWay, line as Lines['table'])
    if (kind === 'rows') return this.#prove(this.underWay, rows, line as Lines['rows'])
    return this.#endLedger(this.underWay, line as Lines['end'])
  }

  #parse(json: Buffer): { kind: (typeof kinds)[number]; line: object } {
    let line: object
    try {
      line = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(json))
    } catch {
      throw this.fail('a line that begins as JSON is none')
    }
    const kind = kinds.find((each) => Object.hasOwn(line, each))
    if (!kind) throw this.fail('a line is of no kind that this version knows')
    const wrong = misfitOf(line, ledgerLines[kind], `the line "${kind}"`)
    if (wrong !== undefined) throw this.fail(`a line does not fit: ${wrong}`)
    return { kind, line }
  }

  /** Finds the ledger that has to come next. */
  #next(society: string): WantedLedger {
    const asked = this.#asked[this.answered]
    if (this.underWay) throw this.fail(`ledger ${society} came before the end of this one`)
    if (!asked) throw this.fail(`ledger ${society} came, and no further one was asked for`)
    if (asked.society !== society)
      throw this.fail(`ledger ${society} came where ${asked.society} was asked for`)
    return asked
  }

  #begin({ ledger, since, cursor, entries }: Lines['ledger']): LedgerPart {
    const asked = this.#next(ledger)
    this.underWay = { asked, cursor, ranges: entries, tables: {}, table: undefined }
    if (since !== (asked.since ?? null))
      throw this.fail(`it came since ${since} and was asked for since ${asked.since ?? null}`)
    if (!areAscending(entries)) throw this.fail('the ranges of entries are not ascending and disjoint')
    const wanted: EntryRange[] = asked.since === undefined ? [['0', lastEntryId]] : (asked.entries ?? [])
    if (!areWithin(wanted, entries)) throw this.fail('entries that were asked for are in none of its ranges')
    return { kind: 'ledger', society: ledger, since, cursor, ranges: entries, resumed: false }
  }

  #beginTable(ledger: UnfinishedLedger, { table, columns }: Lines['table']): LedgerPart {
    const place = tableNames.indexOf(table as LedgerTableName)
    const name = tableNames[place]
    const known = name && ledgerTables[name].columns.map((column) => column.name)
    // A copy that lacked a column could no longer be compared with the digests.
    if (name === undefined || known!.join() !== columns.join())
      throw clientError(
        'UNEXPECTED-ANSWER',
        `Ledger ${ledger.asked.society}: the table ${table} has other columns than this version of the package knows: ` +
          'install the version that the service was released with',
        { requestId: this.#requestId },
      )
    this.#closeTable(ledger)
    if (ledger.table && place <= ledger.table.place)
      throw this.fail(`the table ${table} came after ${tableNames[ledger.table.place]}`)
    const skipped = wholeTables.slice((ledger.table?.place ?? -1) + 1, place)
    const missing = skipped.find((each) => ledger.asked.tables?.[each] === undefined)
    if (missing) throw this.fail(`the table ${missing} did not come`)
    const rows = new TableRows(name, ledger.asked.society, ledger.ranges, this.fail)
    ledger.table = { rows, place, hash: createHash('sha256'), isProven: false, isOver: false }
    return { kind: 'table', table: name }
  }

  /** Ends a table: no more of its rows come. */
  #closeTable({ table, tables }: UnfinishedLedger): void {
    if (!table) return
    const name = table.rows.table
    if (!table.isProven) throw this.fail(`the table ${name} ended without a proof`)
    if (name === 'folders' && table.rows.rows !== 1)
      throw this.fail(`the table folders has ${table.rows.rows} rows`)
    if (name !== 'movements') tables[name] = table.hash.digest('hex')
  }

  #prove(
    { table }: UnfinishedLedger,
    bytes: Buffer,
    { rows, sha256 }: Lines['rows'],
  ): LedgerPart | undefined {
    if (!table) throw this.fail('rows came before a table')
    const name = table.rows.table
    if (createHash('sha256').update(bytes).digest('hex') !== sha256)
      throw this.fail(`rows of ${name} differ from their SHA-256`)
    const passed = table.rows.pass(bytes)
    if (passed !== rows) throw this.fail(`${passed} rows of ${name} came, and their proof says ${rows}`)
    if (table.isOver || (rows === 0 && table.isProven))
      throw this.fail(`${name} went on after its last proof`)
    table.isProven = true
    table.isOver = rows === 0
    if (name !== 'movements') table.hash.update(bytes)
    return rows === 0 ? undefined : { kind: 'rows', table: name, bytes, rows }
  }

  #endLedger(ledger: UnfinishedLedger, { end, ...line }: Lines['end']): LedgerPart {
    const { asked, table, cursor } = ledger
    if (end !== asked.society) throw this.fail(`its end is that of ${end}`)
    if (table?.rows.table !== 'movements') throw this.fail('it ended before its movements')
    this.#closeTable(ledger)
    const { rows } = table
    const came = { rows: rows.rows, debit: rows.debit.text(), credit: rows.credit.text() }
    for (const name of ['rows', 'debit', 'credit'] as const)
      if (came[name] !== line[name])
        throw this.fail(`${name} of its movements are ${came[name]}, and its end says ${line[name]}`)
    for (const name of wholeTables)
      if (line.tables[name] !== (ledger.tables[name] ?? asked.tables?.[name]))
        throw this.fail(`the table ${name} differs from the SHA-256 at the end`)
    this.#answer()
    const tables = Object.fromEntries(wholeTables.map((name) => [name, line.tables[name]]))
    return { kind: 'end', society: end, cursor, ...came, tables: tables as typeof line.tables }
  }

  #refuse({ refused, code, message }: Lines['refused']): LedgerPart {
    if (!this.underWay) this.#next(refused)
    else if (refused !== this.underWay.asked.society)
      throw this.fail(`ledger ${refused} is refused within it`)
    this.#answer()
    this.#refusals += 1
    return { kind: 'refused', society: refused, code, message }
  }

  #answer(): void {
    this.underWay = undefined
    this.answered += 1
  }

  #end({ whole, refusals }: Lines['whole']): LedgerPart {
    const ended = this.answered - this.#refusals
    if (this.underWay) throw this.fail('the line "whole" came before the end of this ledger')
    if (whole !== ended || refusals !== this.#refusals)
      throw this.fail(
        `${ended} came and ${this.#refusals} were refused, and the last line says ${whole} and ${refusals}`,
      )
    if (this.answered < this.#asked.length)
      throw this.fail(`the last line came before ledger ${this.#asked[this.answered]!.society}`)
    this.isWhole = true
    return { kind: 'whole', ledgers: whole, refusals }
  }
}
