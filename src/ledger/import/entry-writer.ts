/** Loads entries and their movements in batches. */

import type { ClientBase } from 'pg'
import type { EntryRow } from '../../formats/items/entry.ts'
import type { MovementRow } from '../../formats/items/movement.ts'
import type { TableOf } from '../../formats/items/table.ts'
import { analyzeWhileLoading, movementsBeforeAnalyze, TableWriter } from '../load.ts'

/** Movements (or entries) per COPY: foreign keys are checked once per batch, and a batch is some 2 MB. */
export const batchRows = 10_000

export type WrittenCounts = EntryWriter<EntryRow, MovementRow>['counts']

export class EntryWriter<Entry extends EntryRow, Movement extends MovementRow> {
  readonly #client: ClientBase
  readonly #entries: TableWriter<Entry>
  readonly #movements: TableWriter<Movement>
  #loading = Promise.resolve()
  #isAnalyzed: boolean
  /** What was handed over. */
  readonly counts = {
    entries: 0,
    movements: 0,
    debit: 0n,
    credit: 0n,
    drafts: 0,
    /** Exercices that have entries. */
    filled: new Set<string>(),
  }

  constructor(client: ClientBase, entries: TableOf<Entry>, movements: TableOf<Movement>) {
    this.#client = client
    this.#entries = new TableWriter(client, entries)
    this.#movements = new TableWriter(client, movements)
    // Temporary tables have no foreign keys to look up.
    this.#isAnalyzed = entries.schema === 'pg_temp'
  }

  addEntry(row: Entry): void {
    this.#entries.add(row)
    this.counts.entries += 1
    if (row.validatedAt === null) this.counts.drafts += 1
    this.counts.filled.add(row.exerciceId)
  }

  /** Its entry was added before. */
  addMovement(row: Movement): void {
    this.#movements.add(row)
    this.counts.movements += 1
    this.counts.debit += row.debit
    this.counts.credit += row.credit
  }

  async flushIfFull(): Promise<void> {
    await this.startIfFull()
    await this.loaded
  }

  /**
   * Hands the batch to the database if it is full, and does not wait, so that the next one is read meanwhile. Further
   * statements on the connection must wait for `loaded`: it does one thing at a time.
   * @param before runs before the COPY if there is one
   */
  async startIfFull(before?: () => Promise<unknown>): Promise<void> {
    // Not their sum: a file may have entries without movements.
    const pending = Math.max(this.#entries.pendingRows, this.#movements.pendingRows)
    if (pending < (this.#isAnalyzed ? batchRows : movementsBeforeAnalyze)) return
    await this.loaded
    await before?.()
    this.#start()
    if (this.#isAnalyzed) return
    await this.loaded
    await analyzeWhileLoading(this.#client)
    this.#isAnalyzed = true
  }

  async flush(): Promise<void> {
    await this.loaded
    this.#start()
    await this.loaded
  }

  /** Settles when the batch is loaded that was handed over last. */
  get loaded(): Promise<void> {
    return this.#loading
  }

  #start(): void {
    this.#loading = this.#load(this.#entries.take(), this.#movements.take())
    // Thrown where it is awaited.
    this.#loading.catch(() => {})
  }

  /** Entries first: movements refer to them. */
  async #load(loadEntries: () => Promise<void>, loadMovements: () => Promise<void>): Promise<void> {
    await loadEntries()
    await loadMovements()
  }
}
