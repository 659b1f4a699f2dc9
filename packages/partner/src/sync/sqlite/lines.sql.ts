/** Rows of a copy in SQLite as the lines that they came as. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type LedgerTableName, ledgerTables } from '../../../../contract/src/ledger-tables.ts'
import { lineOf } from './columns.sql.ts'

/** Rows that one statement joins: their text is in memory twice. */
const rowsAtOnce = 1_000
const [least, most] = [-9223372036854775808n, 9223372036854775807n]

export class LineReader {
  /** The key of the last row of the next chunk. */
  readonly #bound: StatementSync
  readonly #lines: StatementSync

  constructor(database: DatabaseSync, table: LedgerTableName) {
    const key = ledgerTables[table].columns[0]!.name
    const order = table === 'movements' ? 'entry_id, movement_id' : key
    const rows = `from ${table} where society_id = ?`
    this.#bound = database.prepare(
      `select ${key} as bound ${rows} and ${key} >= ? order by ${key} limit 1 offset ?`,
    )
    this.#bound.setReadBigInts(true)
    // Bytes, because a text that is no UTF-8 must not become another one that is.
    this.#lines = database.prepare(
      `select cast(group_concat(line, '') as blob) as lines from (
         select ${lineOf(table)} as line ${rows} and ${key} between ? and ? order by ${order})`,
    )
  }

  /** Chunks of whole lines; rows of one key are in one chunk. */
  *read(society: string): Generator<Uint8Array> {
    const id = BigInt(society)
    for (let from = least; ; ) {
      const bound = this.#bound.get(id, from, rowsAtOnce)?.['bound'] as bigint | undefined
      const to = bound ?? most
      const lines = this.#lines.get(id, from, to)!['lines'] as Uint8Array | null
      if (lines) yield lines
      if (to === most) return
      from = to + 1n
    }
  }
}
