/** Loads entries and their movements in batches. */
import type { ClientBase } from 'pg'
import { type EntryRow, entryTable, movementTable } from '../../formats/items/entry.ts'
import { type FileRow, type Given, orNull, text } from '../../formats/items/table.ts'
import type { FolderKey } from '../../formats/rows.ts'
import type { IdSource } from '../ids.ts'
import { analyzeWhileLoading, compared, movementsBeforeAnalyze, TableWriter } from '../load.ts'

/** The number of movements (or entries) per COPY. Foreign keys are checked once per batch, and a batch is some 2 MB. */
export const batchRows = 10_000

/** The tables, each with a column for the fields that a FEC filed (fec/filed.ts). */
const filedEntries = { ...entryTable, columns: { ...entryTable.columns, filed: orNull(text) } }
const filedMovements = { ...movementTable, columns: { ...movementTable.columns, filed: orNull(text) } }

type WithoutId<Row extends { id: string }> = Omit<Row, 'id'> & { id?: string }
type LoadedEntry = FileRow<typeof filedEntries>
/** A row to load. Its references are ids of the database. An entry without an id gets the next one. */
export type NewEntry = WithoutId<LoadedEntry>
export type NewMovement = Omit<WithoutId<FileRow<typeof filedMovements>>, 'exerciceId' | 'entryId'>

interface EntryLoad {
  key: FolderKey
  /** Absent if all rows of the file have ids. */
  ids?: Pick<IdSource, 'has' | 'reserve' | 'next'>
  /** Whether the rows go into the tables of a replacement (replace/replace.sql.ts). */
  isCompared: boolean
  /** Whether validated entries get their numbers here. Otherwise the database numbers those that have none. */
  isNumbered: boolean
}

export class EntryWriter {
  readonly #client: ClientBase
  readonly #ids: EntryLoad['ids']
  readonly #numberOf: ReturnType<typeof entryNumbers> | undefined
  readonly #entries
  readonly #movements
  #loading = Promise.resolve()
  #isAnalyzed: boolean
  /** Counts of the rows that were handed over. */
  readonly counts = {
    entries: 0,
    movements: 0,
    debit: 0n,
    credit: 0n,
    drafts: 0,
    /** The ids of exercices that have entries. */
    filled: new Set<string>(),
  }

  constructor(client: ClientBase, { key, ids, isCompared, isNumbered }: EntryLoad) {
    const folder = { schemaId: key.schemaId, folderId: key.folderId }
    this.#client = client
    this.#ids = ids
    this.#numberOf = isNumbered ? entryNumbers() : undefined
    this.#entries = new TableWriter(client, isCompared ? compared(filedEntries) : filedEntries, folder)
    this.#movements = new TableWriter(client, isCompared ? compared(filedMovements) : filedMovements, folder)
    // Temporary tables have no foreign keys to look up.
    this.#isAnalyzed = isCompared
  }

  /** Reserves ids for this many entries and movements. */
  async reserve(count: number): Promise<void> {
    if (this.#ids === undefined || this.#ids.has(count)) return
    // A connection does one thing at a time, so this waits for the batch.
    await this.#loading
    await this.#ids.reserve(count)
  }

  addEntry(entry: NewEntry): LoadedEntry {
    const number = this.#numberOf === undefined ? entry.number : this.#numberOf(entry)
    const row = { ...entry, number, id: entry.id ?? this.#ids!.next() }
    this.#entries.add(row)
    this.counts.entries += 1
    if (!row.validatedAt) this.counts.drafts += 1
    this.counts.filled.add(row.exerciceId)
    return row
  }

  addMovement({ exerciceId, id: entryId }: LoadedEntry, movement: NewMovement): void {
    this.#movements.add({ ...movement, exerciceId, entryId, id: movement.id ?? this.#ids!.next() })
    this.counts.movements += 1
    this.counts.debit += movement.debit
    this.counts.credit += movement.credit
  }

  /**
   * Hands a full batch to the database without waiting, so that the next batch is read meanwhile. Other statements on
   * the connection must come after `end` or `settled`.
   */
  async loadIfFull(): Promise<void> {
    // The larger of the two, because a file may have entries without movements.
    const pending = Math.max(this.#entries.pendingRows, this.#movements.pendingRows)
    if (pending < (this.#isAnalyzed ? batchRows : movementsBeforeAnalyze)) return
    await this.#loading
    await this.#ids?.reserve(2 * batchRows)
    this.#load()
    if (this.#isAnalyzed) return
    await this.#loading
    await analyzeWhileLoading(this.#client)
    this.#isAnalyzed = true
  }

  /** Loads the last batch. */
  async end(): Promise<void> {
    await this.#loading
    this.#load()
    await this.#loading
  }

  /**
   * Waits for the batch. Call it after an error, too, because no statement may come into the middle of a batch. @throws
   * the error of the last batch
   */
  settled(): Promise<void> {
    return this.#loading
  }

  #load(): void {
    const [loadEntries, loadMovements] = [this.#entries.take(), this.#movements.take()]
    // Entries first: movements refer to them.
    this.#loading = loadEntries().then(loadMovements)
    // The error is thrown where the promise is awaited.
    this.#loading.catch(() => {})
  }
}

/**
 * Numbers the validated entries of new exercices (docs/spec/fec.md#numbers): 1, 2, 3 in each journal, in the order of
 * loading, because a loader that streams does not know the order of their days of validation. The database numbers
 * entries that come without a number, too, but it writes each of them twice.
 */
export function entryNumbers() {
  const last = new Map<string, number>()
  /** The next number for an entry; null for a draft. */
  return ({
    exerciceId,
    journalId,
    validatedAt,
  }: Given<Pick<EntryRow, 'exerciceId' | 'journalId' | 'validatedAt'>>) => {
    if (!validatedAt) return null
    const key = `${exerciceId} ${journalId}`
    const number = (last.get(key) ?? 0) + 1
    last.set(key, number)
    return String(number)
  }
}
