/** Rows of seeded ledgers on their way into the database, of one folder or of many at once. */
import type { ClientBase } from 'pg'
import { movementTable } from '../../../src/formats/items/entry.ts'
import type { TableOf } from '../../../src/formats/items/table.ts'
import { IdSource } from '../../../src/ledger/ids.ts'
import { analyzeWhileLoading, movementsBeforeAnalyze, TableWriter } from '../../../src/ledger/load.ts'
import { entryLinesMax } from './made-up/ledger.ts'

const movementsPerBatch = 10_000

/** An entry has at least two movements, so a batch needs at most half as many ids more, plus one last entry. */
const idsPerBatch = movementsPerBatch * 1.5 + entryLinesMax + 1

export type SeedLoading = ReturnType<typeof seedLoading>

/**
 * Loads about 10,000 movements at a time, in one COPY a table. So 300 small folders take no more statements than one
 * large one.
 */
export function seedLoading(
  client: ClientBase,
  movements: number,
  onProgress: ((movementsDone: number, movements: number) => void) | undefined,
) {
  const ids = new IdSource(client)
  const writers = new Map<unknown, Pick<TableWriter<never>, 'pendingBytes' | 'flush'>>()
  let bytes = 0
  let loaded = 0

  /** Tables are loaded in the order in which this is called for them: that of their foreign keys. */
  function writer<Row>(table: TableOf<Row>): TableWriter<Row> {
    const found = (writers.get(table) as TableWriter<Row> | undefined) ?? new TableWriter(client, table)
    writers.set(table, found)
    return found
  }

  /** Ensures that there are ids for the entries until the next batch. */
  const reserve = () => ids.reserve(idsPerBatch)

  async function load(): Promise<void> {
    loaded += writer(movementTable).pendingRows
    for (const each of writers.values()) {
      bytes += each.pendingBytes
      await each.flush()
    }
    onProgress?.(loaded, movements)
  }

  /** Between two entries: loads the rows if they make a batch. */
  async function loadBatch(): Promise<void> {
    const isFirst = loaded === 0
    if (writer(movementTable).pendingRows < (isFirst ? movementsBeforeAnalyze : movementsPerBatch)) return
    await load()
    if (isFirst) await analyzeWhileLoading(client)
    await reserve()
  }

  return { ids, writer, reserve, load, loadBatch, /** Of rows sent to the database. */ bytes: () => bytes }
}
