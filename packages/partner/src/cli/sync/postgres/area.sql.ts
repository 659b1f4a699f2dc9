/** The statements that write one area of a copy in PostgreSQL. */
import { idOfLine, linesOf } from '../lines/entry-lines.ts'
import { entryRows, type Value } from '../lines/rows.ts'
import { collectionRows, prefixes, tables } from '../targets/tables.ts'
import type { Area, Change, Collections, Counts, EntryRange, Part, State } from '../targets/target.ts'
import { insertRows } from './schema.sql.ts'

type Client = import('pg').Client

/** Bytes of lines that become rows of one statement. */
const statementBytes = 1024 * 1024

export class AreaOfPostgres implements Change {
  readonly #client: Client
  readonly #area: Area
  readonly #prefix: string

  constructor(client: Client, area: Area) {
    this.#client = client
    this.#area = area
    this.#prefix = prefixes[area]
  }

  async append(part: Part, lines: Uint8Array): Promise<Counts> {
    const counts = { entries: 0, movements: 0, removed: 0 }
    let waiting: Buffer[] = []
    let bytes = 0
    for (const line of linesOf(lines)) {
      waiting.push(line)
      bytes += line.length
      if (bytes < statementBytes) continue
      counts.movements += await this.#addLines(part, waiting)
      counts.entries += waiting.length
      waiting = []
      bytes = 0
    }
    counts.movements += await this.#addLines(part, waiting)
    counts.entries += waiting.length
    return counts
  }

  async replace(
    part: Part,
    ranges: readonly EntryRange[],
    lines: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<Counts> {
    const total: Counts = { entries: 0, movements: 0, removed: await this.#removeRanges(part, ranges) }
    for await (const chunk of lines) {
      const { entries, movements } = await this.append(part, chunk)
      total.entries += entries
      total.movements += movements
    }
    return total
  }

  async setCollections(collections: Collections): Promise<void> {
    for (const [table, rows] of collectionRows(collections)) {
      await this.#client.query(`delete from ${this.#prefix}${table}`)
      await this.#insert(table, rows)
    }
  }

  async setState(state: State): Promise<void> {
    await this.#client.query(
      `insert into sync_state (area, state) values ($1, $2)
       on conflict (area) do update set state = excluded.state`,
      [this.#area, JSON.stringify(state)],
    )
  }

  /** @returns the number of movements */
  async #addLines(part: Part, lines: Buffer[]): Promise<number> {
    if (lines.length === 0) return 0
    const ids = lines.map(idOfLine)
    // Another part may have an entry that has moved.
    await this.#removeWhere('entry_id = any ($1::bigint[])', [ids])
    const rows = lines.map((line) => entryRows(line, part))
    const movements = rows.flatMap((row) => row.movements)
    await this.#insert(
      'entries',
      rows.map(({ entry }) => entry),
    )
    await this.#insert(
      'entry_lines',
      lines.map((line, place) => [ids[place]!, line.toString()]),
    )
    await this.#insert('movement_rows', movements)
    return movements.length
  }

  async #insert(name: string, rows: Value[][]): Promise<void> {
    if (rows.length === 0) return
    const table = tables.find((one) => one.name === name)!
    await this.#client.query(insertRows(table, this.#prefix), [jsonOf(rows)])
  }

  async #removeRanges({ exercice, draft }: Part, ranges: readonly EntryRange[]): Promise<number> {
    if (ranges.length === 0) return 0
    const among = ranges.map(([from, to]) => `[${BigInt(from)},${BigInt(to)}]`).join(',')
    return this.#removeWhere(
      `entry_id in (select e.entry_id from unnest($1::int8multirange) r
         join ${this.#prefix}entries e on e.entry_id >= lower(r) and e.entry_id < upper(r)
         where e.exercice_id = $2 and e.draft = $3)`,
      [`{${among}}`, exercice, draft],
    )
  }

  /** @returns the number of entries. They go last, since the condition may ask for them. */
  async #removeWhere(condition: string, values: unknown[]): Promise<number> {
    let entries = 0
    for (const table of ['movement_rows', 'entry_lines', 'entries']) {
      const { rowCount } = await this.#client.query(
        `delete from ${this.#prefix}${table} where ${condition}`,
        values,
      )
      entries = rowCount ?? 0
    }
    return entries
  }
}

/** Whole numbers beyond those of JSON become texts, which are read alike. */
function jsonOf(rows: Value[][]): string {
  return JSON.stringify(rows, (_key, value) => (typeof value === 'bigint' ? String(value) : value))
}
