/** Loads entries and their movements in batches. */
import type { ClientBase } from 'pg'
import { type EntryRow, entryTable, movementTable } from '../../formats/items/entry.ts'
import { type FileRow, type Given, orNull, text } from '../../formats/items/table.ts'
import type { FolderKey } from '../../formats/rows.ts'
import type { IdSource } from '../ids.ts'
import { analyzeWhileLoading, compared, movementsBeforeAnalyze, TableWriter } from '../load.ts'

/** Movements (or entries) per COPY: foreign keys are checked once per batch, and a batch is some 2 MB. */
export const batchRows = 10_000

/** The tables, with the column of what a FEC filed (fec/filed.ts). */
const filedEntries = { ...entryTable, columns: { ...entryTable.columns, filed: orNull(text) } }
const filedMovements = { ...movementTable, columns: { ...movementTable.columns, filed: orNull(text) } }

type WithoutId<Row extends { id: string }> = Omit<Row, 'id'> & { id?: string }
type LoadedEntry = FileRow<typeof filedEntries>
/** References are ids of the database. An entry without an id gets the next one. */
export type NewEntry = WithoutId<LoadedEntry>
export type NewMovement = Omit<WithoutId<FileRow<typeof filedMovements>>, 'exerciceId' | 'entryId'>

interface EntryLoad {
  key: FolderKey
  /** Absent if the file has all ids. */
  ids?: Pick<IdSource, 'has' | 'reserve' | 'next'>
  /** Whether they go into the tables of a replacement (replace/replace.sql.ts). */
  isCompared: boolean
  /** Whether validated entries get numbers here; otherwise the database numbers those that have none. */
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

  /** Ensures that there are ids for this many entries and movements. */
  async reserve(count: number): Promise<void> {
    if (this.#ids === undefined || this.#ids.has(count)) return
    // A connection does one thing at a time.
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
   * Hands the batch to the database if it is full, and does not wait, so that the next one is read meanwhile. Other
   * statements on the connection come after `end` or `settled`.
   */
  async loadIfFull(): Promise<void> {
    // Not their sum: a file may have entries without movements.
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

  /** Call after an error, too: no statement may come into the middle of a batch. @throws the error of the last batch */
  settled(): Promise<void> {
    return this.#loading
  }

  #load(): void {
    const [loadEntries, loadMovements] = [this.#entries.take(), this.#movements.take()]
    // Entries first: movements refer to them.
    this.#loading = loadEntries().then(loadMovements)
    // Thrown where it is awaited.
    this.#loading.catch(() => {})
  }
}

/**
 * Numbers the validated entries of new exercices (docs/spec/fec.md#numbers): 1, 2, 3 in each journal, in the order in
 * which they are loaded: a loader that streams does not know the order of their days of validation. The database
 * numbers entries that come without a number itself, but writes each of them twice.
 */
export function entryNumbers() {
  const last = new Map<string, number>()
  /** The next number; null for a draft. */
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
