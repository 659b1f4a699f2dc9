/**
 * Which lines of a FEC make one entry. The regulation says: those of one journal, number and date. Not every
 * program keeps to it: some write 0 into every EcritureNum, some count lines instead of entries. So:
 *
 * 1. A number that is not blank or zero names an entry where the lines of that journal, number and date
 *    balance, wherever in the file they stand (a FEC may be sorted by account).
 * 2. The other lines are cut into runs: consecutive lines of one journal and date, up to where they balance.
 *    For numbers that are all zero, this finds each invoice, where the day as a whole would lump them
 *    together.
 * 3. Lines whose run does not balance before journal or date change stay together by journal, number and
 *    date, and that entry does not balance. The ledger as a whole does: that was checked before.
 *
 * Two steps, one in each pass over the file: EntryGroups finds out which groups balance and which are
 * scattered, EntryFinder then cuts the lines into pieces of entries. In a file whose entries stand together
 * neither remembers more than one entry (and 16 MiB for the keys seen). What does not balance or is scattered
 * costs a key each.
 */
import type { FecLine } from '../../../formats/fec/parse.ts'
import { BloomFilter } from './bloom-filter.ts'
import { OpenBalances } from './open-balances.ts'

/** A line with the date under which the ledger holds it, and its own where that is another. */
export type DatedLine = FecLine & { originalDate?: string }

/**
 * Longer entries are handed over in pieces: a whole ledger under one number must not have to fit into memory.
 */
const pieceLinesMax = 10_000

function groupKey(line: DatedLine): string {
  return `${line.journalCode}\t${line.entryNumber}\t${line.date}`
}

function numberIdentifies(line: FecLine): boolean {
  return !/^0*$/.test(line.entryNumber)
}

/**
 * The first pass: which journal-number-date groups balance, and which of them stand in more than one place.
 */
export class EntryGroups {
  readonly #unbalanced = new OpenBalances()
  readonly #scattered = new Set<string>()
  readonly #seen = new BloomFilter()
  #key = ''
  #balance = 0n

  add(line: DatedLine): void {
    const key = numberIdentifies(line) ? groupKey(line) : ''
    if (key !== this.#key) {
      this.end()
      this.#key = key
      if (key !== '' && this.#seen.add(key)) this.#scattered.add(key)
    }
    if (key !== '') this.#balance += line.debit - line.credit
  }

  end(): void {
    this.#unbalanced.add(this.#key, this.#balance)
    this.#balance = 0n
  }

  /** Whether this line's entry is found by journal, number and date. */
  identifies(line: DatedLine): boolean {
    return numberIdentifies(line) && !this.#unbalanced.has(groupKey(line))
  }

  /** Whether the group may have lines in several places of the file; never false where it has. */
  isScattered(key: string): boolean {
    return this.#scattered.has(key)
  }
}

/** Lines of one entry, in the order of the file. */
export interface EntryPiece {
  /** Pieces with the same key are one entry; a piece without is an entry of its own. */
  key: string | undefined
  lines: DatedLine[]
}

/** The second pass. Lines come out in pieces, each line exactly once, a little after they went in. */
export class EntryFinder {
  readonly #groups: EntryGroups
  #lines: DatedLine[] = []
  /** What the lines gathered have in common: the group's key, or journal and date of a run. */
  #span = ''
  #isRun = false
  #balance = 0n
  /** Whether lines of this run or group have left already, because there were too many. */
  #cut = false

  constructor(groups: EntryGroups) {
    this.#groups = groups
  }

  add(line: DatedLine): EntryPiece[] {
    const isRun = !this.#groups.identifies(line)
    const span = isRun ? `${line.journalCode}\t${line.date}` : groupKey(line)
    const pieces = isRun === this.#isRun && span === this.#span ? [] : this.end()
    this.#isRun = isRun
    this.#span = span
    this.#lines.push(line)
    if (!isRun) {
      if (this.#lines.length >= pieceLinesMax) pieces.push(...this.#cutOff())
      return pieces
    }
    const amount = line.debit - line.credit
    this.#balance += amount
    // A line of zero ends no run: it would be an entry of its own, torn from the lines that it belongs to.
    if (this.#balance === 0n && amount !== 0n) pieces.push(...this.#endRun(true))
    else if (this.#lines.length >= pieceLinesMax) pieces.push(...this.#cutOff())
    return pieces
  }

  /** What is left: at the end of the file, of a group, or of a run that did not balance. */
  end(): EntryPiece[] {
    if (this.#isRun) return this.#endRun(false)
    const lines = this.#take()
    const key = this.#cut || this.#groups.isScattered(this.#span) ? this.#span : undefined
    this.#cut = false
    return lines.length === 0 ? [] : [{ key, lines }]
  }

  #endRun(balanced: boolean): EntryPiece[] {
    const lines = this.#take()
    const whole = balanced && !this.#cut
    this.#balance = 0n
    this.#cut = false
    return whole ? [{ key: undefined, lines }] : byGroup(lines)
  }

  #cutOff(): EntryPiece[] {
    this.#cut = true
    return this.#isRun ? byGroup(this.#take()) : [{ key: this.#span, lines: this.#take() }]
  }

  #take(): DatedLine[] {
    const lines = this.#lines
    this.#lines = []
    return lines
  }
}

function byGroup(lines: DatedLine[]): EntryPiece[] {
  return [...Map.groupBy(lines, groupKey)].map(([key, group]) => ({ key, lines: group }))
}
