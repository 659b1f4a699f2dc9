/** Rows of seeded ledgers on their way into the database, of one folder or of many at once. */
import type { ClientBase } from 'pg'
import { movementTable } from '../../../src/formats/items/movement.ts'
import type { TableOf } from '../../../src/formats/items/table.ts'
import { IdSource } from '../../../src/ledger/ids.ts'
import { analyzeWhileLoading, movementsBeforeAnalyze, TableWriter } from '../../../src/ledger/load.ts'
import { entryLinesMax } from './made-up/ledger.ts'

const movementsPerBatch = 10_000

/** An entry has at least two movements, so a batch needs at most half as many ids more, plus one last entry. */
const idsPerBatch = movementsPerBatch * 1.5 + entryLinesMax + 1

/**
 * Loads about 10,000 movements at a time, in one COPY a table. So 300 small folders take no more statements than one
 * large one.
 */
export class SeedLoading {
  readonly ids: IdSource
  readonly #client: ClientBase
  readonly #writers = new Map<unknown, Pick<TableWriter<never>, 'pendingBytes' | 'flush'>>()
  readonly #onBatch: ((movementsDone: number) => void) | undefined
  /** Bytes of rows sent to the database. */
  bytes = 0
  #loaded = 0

  constructor(client: ClientBase, onBatch: ((movementsDone: number) => void) | undefined) {
    this.ids = new IdSource(client)
    this.#client = client
    this.#onBatch = onBatch
  }

  /** Tables are loaded in the order in which this is called for them: that of their foreign keys. */
  writer<Row>(table: TableOf<Row>): TableWriter<Row> {
    const known = this.#writers.get(table) as TableWriter<Row> | undefined
    const writer = known ?? new TableWriter(this.#client, table)
    this.#writers.set(table, writer)
    return writer
  }

  /** Ensures that there are ids for the entries until the next batch. */
  async reserve(): Promise<void> {
    await this.ids.reserve(idsPerBatch)
  }

  /** Between two entries: loads the rows if they make a batch. */
  async loadBatch(): Promise<void> {
    const isFirst = this.#loaded === 0
    if (this.writer(movementTable).pendingRows < (isFirst ? movementsBeforeAnalyze : movementsPerBatch))
      return
    await this.load()
    if (isFirst) await analyzeWhileLoading(this.#client)
    await this.reserve()
  }

  async load(): Promise<void> {
    this.#loaded += this.writer(movementTable).pendingRows
    for (const writer of this.#writers.values()) {
      this.bytes += writer.pendingBytes
      await writer.flush()
    }
    this.#onBatch?.(this.#loaded)
  }
}
