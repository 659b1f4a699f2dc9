/** Writes the parts of a stream into a copy: each ledger in a transaction, from its first part to its end. */
import { commonOf, unionOf } from '../client/ledgers/entry-ranges.ts'
import type { Ledger, LedgerBegin, LedgerEnd, ProvenRows, TableBegin } from '../client/ledgers/parts.ts'
import type { Copy } from './copy.ts'
import type { CopiedLedger } from './events.ts'

export class LedgerReceiver {
  readonly #copy: Copy
  readonly #listed: ReadonlyMap<string, Ledger>
  #begun: LedgerBegin | undefined
  #startedAt = 0
  #before = 0
  #after = 0
  #cameTables = 0

  constructor(copy: Copy, listed: ReadonlyMap<string, Ledger>) {
    this.#copy = copy
    this.#listed = listed
  }

  /** @returns what was copied, at the end of a ledger */
  async take(part: LedgerBegin | TableBegin | ProvenRows | LedgerEnd): Promise<CopiedLedger | undefined> {
    switch (part.kind) {
      case 'ledger':
        await this.#begin(part)
        return
      case 'table':
        if (part.table !== 'movements') this.#cameTables += 1
        await this.#copy.table(part.table)
        return
      case 'rows': {
        const { buffer, byteOffset, byteLength } = part.bytes
        if (part.table === 'movements') this.#after += part.rows
        await this.#copy.rows(Buffer.from(buffer, byteOffset, byteLength))
        return
      }
      case 'end':
        return this.#end(part)
    }
  }

  async #begin(part: LedgerBegin): Promise<void> {
    if (part.resumed) {
      const { ranges } = this.#begun!
      // Rows that came before the break and come again, then those of entries that have changed since.
      this.#after -= await this.#copy.dropEntries(commonOf(ranges, part.ranges))
      this.#before += await this.#copy.dropEntries(part.ranges)
      this.#begun = { ...this.#begun!, ranges: unionOf(ranges, part.ranges) }
      return
    }
    this.#begun = part
    this.#startedAt = performance.now()
    this.#after = 0
    this.#cameTables = 0
    await this.#copy.begin(part.society)
    this.#before = await this.#copy.dropEntries(part.ranges)
  }

  async #end({ society, cursor, tables }: LedgerEnd): Promise<CopiedLedger> {
    const { ranges: entries, since } = this.#begun!
    const { firm, name } = this.#listed.get(society)!
    const at = new Date().toISOString()
    const [rows_before, rows_after] = [this.#before, this.#after]
    // A repair reads rows of the same state again.
    const isChanged = since !== cursor && (entries.length > 0 || this.#cameTables > 0)
    await this.#copy.commit(
      {
        firm_id: firm.id,
        firm_name: firm.name,
        cursor,
        table_digests: tables,
        synced_at: at,
        ...(isChanged ? { changed_at: at } : {}),
        gone_at: null,
        failed_at: null,
        failure: null,
      },
      isChanged ? { at, cursor, entries, rows_before, rows_after } : null,
    )
    const ms = performance.now() - this.#startedAt
    return { kind: 'copied', at, society, name, since, cursor, entries, rows_before, rows_after, ms }
  }
}
