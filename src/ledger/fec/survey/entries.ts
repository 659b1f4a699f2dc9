/**
 * Groups the lines of a FEC into entries. The regulation says: an entry is the lines of one journal, number and date.
 * Some programs do not follow it: they write 0 into every EcritureNum, or number lines instead of entries. So:
 *
 * 1. A number that is neither blank nor zero identifies an entry if the lines of its journal, number and date balance,
 *    wherever they are in the file (a FEC may be sorted by account).
 * 2. The other lines are cut into runs: consecutive lines of one journal and date, up to the line where they balance.
 *    If all numbers are zero, this finds each invoice, whereas grouping by day would lump them together.
 * 3. Some runs do not balance before the journal or date changes. Their lines are grouped by journal, number and date
 *    into entries that do not balance. The ledger as a whole does balance: that was checked before.
 *
 * There are two steps, one in each pass over the file. EntryGroups finds out which groups balance and which are
 * scattered; then EntryFinder cuts the lines into pieces of entries. For a file with contiguous entries, neither keeps
 * more than one entry in memory, and 16 MiB for the keys seen. Each unbalanced or scattered group costs one key.
 */
import type { FecLine } from '../../../formats/fec/parse.ts'

/** A line with its date in the ledger, and with its original date if that is another. */
export type DatedLine = FecLine & { originalDate?: string }

/**
 * The most lines in a piece. Longer entries are passed on in several pieces, so that a whole ledger under one number
 * need not fit into memory.
 */
const pieceLinesMax = 10_000

/** Joins with line feeds, because a field may contain a tab, but no line feed. */
function groupKey(line: DatedLine): string {
  return `${line.journalCode}\n${line.entryNumber}\n${line.date}`
}

function numberIdentifies(line: FecLine): boolean {
  return !/^0*$/.test(line.entryNumber)
}

/** The first pass: finds which groups (journal, number, date) balance, and which are scattered over the file. */
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

  /** Whether journal, number and date identify this line's entry. */
  identifies(line: DatedLine): boolean {
    return numberIdentifies(line) && !this.#unbalanced.has(groupKey(line))
  }

  /**
   * Whether the group may have lines in several parts of the file. The answer may be true for a group in one part. It is
   * never false for a group in several parts.
   */
  isScattered(key: string): boolean {
    return this.#scattered.has(key)
  }
}

/**
 * Lines of one entry, in file order. Pieces with the same key form one entry; a piece without a key is a complete
 * entry.
 */
export type EntryPiece = { key: string | undefined; lines: DatedLine[] }

/** The second pass. Returns each line exactly once, in a piece, a little after it was added. */
export class EntryFinder {
  readonly #groups: EntryGroups
  #lines: DatedLine[] = []
  /** What the collected lines have in common: the key of their group, or the journal and date of their run. */
  #span = ''
  #isRun = false
  #balance = 0n
  /** Whether earlier lines of this run or group were already passed on, because there were too many. */
  #cut = false

  constructor(groups: EntryGroups) {
    this.#groups = groups
  }

  add(line: DatedLine): EntryPiece[] {
    const isRun = !this.#groups.identifies(line)
    const span = isRun ? `${line.journalCode}\n${line.date}` : groupKey(line)
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
    // A zero amount does not end a run: the line would become an entry of its own, apart from the lines it belongs to.
    if (this.#balance === 0n && amount !== 0n) pieces.push(...this.#endRun(true))
    else if (this.#lines.length >= pieceLinesMax) pieces.push(...this.#cutOff())
    return pieces
  }

  /** Returns the remaining lines, at the end of the file, of a group, or of an unbalanced run. */
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

/**
 * A Bloom filter: remembers keys in 16 MiB, however many there are. It never forgets a key, but may report a new key as
 * seen (once in 100,000 keys, for 5 million of them). A set of 5 million strings would take 500 MB.
 */
class BloomFilter {
  readonly #bits = new Uint32Array(2 ** 22)

  /** Adds the key. @returns whether the key may have been added before */
  add(key: string): boolean {
    let [low, high] = hashes(key)
    let seen = true
    for (let probe = 0; probe < probesPerKey; probe += 1) {
      // The upper 22 bits select a word and the 5 below them a bit in it.
      const word = low >>> 10
      const bit = 1 << ((low >>> 5) & 31)
      seen &&= (this.#bits[word]! & bit) !== 0
      this.#bits[word]! |= bit
      low = (low + high) | 0
      high = (high + probe) | 0
    }
    return seen
  }
}

const probesPerKey = 6

/** Two independent 32-bit hashes (FNV-1a, each with its own final mix), from which the probes derive. */
function hashes(key: string): [number, number] {
  let hash = 0x811c9dc5
  let other = 0x9747b28c
  for (let at = 0; at < key.length; at += 1) {
    const code = key.charCodeAt(at)
    hash = Math.imul(hash ^ code, 0x01000193)
    other = Math.imul(other ^ code, 0x5bd1e995)
    other ^= other >>> 15
  }
  hash ^= hash >>> 16
  hash = Math.imul(hash, 0x85ebca6b)
  hash ^= hash >>> 13
  return [hash | 0, other | 1]
}

/**
 * Running balances, in minor units, of many keys that should each reach zero, such as entries and letterings. A key at
 * zero is forgotten, so memory depends on how many are open at a time rather than on the length of the ledger. The keys
 * left at the end never balanced.
 */
export class OpenBalances {
  readonly #balances = new Map<string, bigint>()

  add(key: string, amount: bigint): void {
    if (amount === 0n) return
    const balance = (this.#balances.get(key) ?? 0n) + amount
    if (balance === 0n) this.#balances.delete(key)
    else this.#balances.set(key, balance)
  }

  has(key: string): boolean {
    return this.#balances.has(key)
  }
}
