/** Loads entries and their movements in batches, and numbers the entries: their exercices are new. */
import type { ClientBase } from 'pg'
import type { EntryRow, MovementRow } from '../../formats/rows.ts'
import { EntryNumbers } from '../entry-numbers.ts'
import { analyzeWhileLoading, entries, movements, movementsBeforeAnalyze, TableWriter } from '../load.ts'

/** Movements per COPY: foreign keys are checked once per batch, and a batch is some 2 MB. */
const batchMovements = 10_000

/** An entry of a file that holds no number for it. */
export type NewEntry = Omit<EntryRow, 'number'>

export class EntryWriter {
  readonly #client: ClientBase
  readonly #entries: TableWriter<EntryRow>
  readonly #movements: TableWriter<MovementRow>
  readonly #numbers = new EntryNumbers()
  #pending = 0
  #isAnalyzed = false

  constructor(client: ClientBase) {
    this.#client = client
    this.#entries = new TableWriter(client, entries)
    this.#movements = new TableWriter(client, movements)
  }

  addEntry(row: NewEntry): void {
    this.#entries.add({ ...row, number: this.#numbers.next(row) })
    this.#pending += 1
  }

  /** Its entry was added before. */
  addMovement(row: MovementRow): void {
    this.#movements.add(row)
    this.#pending += 1
  }

  async flushIfFull(): Promise<void> {
    if (this.#pending < (this.#isAnalyzed ? batchMovements : movementsBeforeAnalyze)) return
    await this.flush()
    if (!this.#isAnalyzed) await analyzeWhileLoading(this.#client)
    this.#isAnalyzed = true
  }

  /** Entries first: movements refer to them. */
  async flush(): Promise<void> {
    await this.#entries.flush()
    await this.#movements.flush()
    this.#pending = 0
  }
}
