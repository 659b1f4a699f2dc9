/**
 * Finds ids that a file has twice when they are not kept. Those that are kept are in keys of the database; these are
 * collected in a temporary table, as memory must not grow with the entries. 400,000 ids take half a second.
 */
import type { ClientBase } from 'pg'
import { type TableOf, TableWriter } from '../load.ts'
import type { EntryTable } from './kept-ids.sql.ts'

interface FileId {
  kind: EntryTable
  id: string
}

const fileIds: TableOf<FileId> = {
  schema: 'pg_temp',
  name: 'file_ids',
  columns: { kind: 'plain', id: 'plain' },
}

/** Ids waiting for one COPY. */
const pendingBytesMax = 1_000_000

export class RepeatedIds {
  readonly #client: ClientBase
  readonly #writer: TableWriter<FileId>

  private constructor(client: ClientBase) {
    this.#client = client
    this.#writer = new TableWriter(client, fileIds)
  }

  static async in(client: ClientBase): Promise<RepeatedIds> {
    await client.query('create temporary table file_ids (kind text, id bigint) on commit drop')
    return new RepeatedIds(client)
  }

  add(kind: EntryTable, id: string): void {
    this.#writer.add({ kind, id })
  }

  async flushIfFull(): Promise<void> {
    if (this.#writer.pendingBytes > pendingBytesMax) await this.#writer.flush()
  }

  /** The lowest id that was added twice, of an entry before those of movements. */
  async find(): Promise<FileId | undefined> {
    await this.#writer.flush()
    const { rows } = await this.#client.query<FileId>(
      `select kind, id from pg_temp.file_ids group by kind, id having count(*) > 1 order by kind, id limit 1`,
    )
    return rows[0]
  }
}
