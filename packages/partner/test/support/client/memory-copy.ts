/** A copy of ledgers in memory, which follows the rules for consumers of parts. */
import { type LedgerTableName, wholeTables } from '../../../../contract/src/ledger-tables.ts'
import type {
  EntryRange,
  Grandlivre,
  LedgerChangesOptions,
  LedgerEnd,
  LedgerPart,
  WantedLedger,
} from '../../../src/client/grandlivre.ts'

type Rows = Map<LedgerTableName, Buffer[]>

export class MemoryCopy {
  /** Committed: the cursor, the digests, and each table's bytes. */
  readonly ledgers = new Map<string, { cursor: string; tables: LedgerEnd['tables']; rows: Rows }>()
  /** All parts that came. */
  readonly parts: LedgerPart[] = []
  /** The open transaction. */
  #open: { society: string; rows: Rows } | undefined
  #table: LedgerTableName = 'folders'

  /** Takes parts, and throws what the library throws. */
  async follow(ledger: Grandlivre, wanted?: WantedLedger[], options?: LedgerChangesOptions): Promise<void> {
    try {
      for await (const part of ledger.ledgerChanges(wanted, options)) this.take(part)
    } finally {
      this.#open = undefined
    }
  }

  take(part: LedgerPart): void {
    this.parts.push(part)
    if (part.kind === 'ledger') {
      if (part.resumed !== (this.#open?.society === part.society))
        throw new Error('resumed at the wrong time')
      this.#open ??= { society: part.society, rows: new Map(this.ledgers.get(part.society)?.rows) }
      this.#open.rows.set('movements', this.#without(part.ranges))
    } else if (part.kind === 'table') {
      this.#table = part.table
      if (part.table !== 'movements') this.#open!.rows.set(part.table, [])
    } else if (part.kind === 'rows') {
      if (part.table !== this.#table) throw new Error('rows of another table')
      this.#open!.rows.get(part.table)!.push(...linesOf(part.bytes))
    } else if (part.kind === 'end') {
      const { society, cursor, tables } = part
      this.ledgers.set(society, { cursor, tables, rows: this.#open!.rows })
      this.#open = undefined
    } else if (part.kind === 'refused' || part.kind === 'postponed') this.#open = undefined
  }

  /** Every committed row, in the order of the ledger. */
  text(society: string): string {
    const { rows } = this.ledgers.get(society)!
    const movements = rows
      .get('movements')!
      .map((line) => ({ line, keys: keysOf(line) }))
      .sort((one, other) => one.keys[0] - other.keys[0] || one.keys[1] - other.keys[1])
      .map(({ line }) => line)
    return [...wholeTables.map((name) => Buffer.concat(rows.get(name)!)), ...movements].map(String).join('')
  }

  #without(ranges: EntryRange[]): Buffer[] {
    const isIn = (entry: number) => ranges.some(([from, to]) => entry >= Number(from) && entry <= Number(to))
    return (this.#open!.rows.get('movements') ?? []).filter((line) => !isIn(keysOf(line)[0]))
  }
}

/** The ids of the entry and of the movement in a line. */
function keysOf(line: Buffer): [number, number] {
  const fields = line.toString('latin1').split('\t', 19)
  return [Number(fields[0]), Number(fields[18])]
}

/** The lines, each with its line feed. */
export function linesOf(bytes: Uint8Array): Buffer[] {
  const whole = Buffer.from(bytes)
  const lines: Buffer[] = []
  for (let start = 0, end: number; start < whole.length; start = end) {
    end = whole.indexOf(10, start) + 1
    lines.push(whole.subarray(start, end))
  }
  return lines
}
