/** Loads entries and their movements in batches. */
import type { ClientBase } from 'pg'
import type { EntryRow, MovementRow } from '../../formats/rows.ts'
import { analyzeWhileLoading, movementsBeforeAnalyze, type TableOf, TableWriter } from '../load.ts'

/** Movements (or entries) per COPY: foreign keys are checked once per batch, and a batch is some 2 MB. */
const batchRows = 10_000

export class EntryWriter<Entry extends EntryRow, Movement extends MovementRow> {
  readonly #client: ClientBase
  readonly #entries: TableWriter<Entry>
  readonly #movements: TableWriter<Movement>
  #isAnalyzed: boolean

  constructor(client: ClientBase, entries: TableOf<Entry>, movements: TableOf<Movement>) {
    this.#client = client
    this.#entries = new TableWriter(client, entries)
    this.#movements = new TableWriter(client, movements)
    // Temporary tables have no foreign keys to look up.
    this.#isAnalyzed = entries.schema === 'pg_temp'
  }

  addEntry(row: Entry): void {
    this.#entries.add(row)
  }

  /** Its entry was added before. */
  addMovement(row: Movement): void {
    this.#movements.add(row)
  }

  async flushIfFull(): Promise<void> {
    // Not their sum: a file may have entries without movements.
    const pending = Math.max(this.#entries.pendingRows, this.#movements.pendingRows)
    if (pending < (this.#isAnalyzed ? batchRows : movementsBeforeAnalyze)) return
    await this.flush()
    if (!this.#isAnalyzed) await analyzeWhileLoading(this.#client)
    this.#isAnalyzed = true
  }

  /** Entries first: movements refer to them. */
  async flush(): Promise<void> {
    await this.#entries.flush()
    await this.#movements.flush()
  }
}
