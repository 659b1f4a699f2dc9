/** The statements that write one area of a copy in SQLite. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { linesOf } from '../lines/entry-lines.ts'
import { type EntryRows, entryRows, type Value } from '../lines/rows.ts'
import { collectionRows, prefixes, tables } from '../targets/tables.ts'
import type { Area, Change, Collections, Counts, EntryRange, Part, State } from '../targets/target.ts'

/** Movements of one statement: with ten, a load takes a fifth less time than with one. */
const movementsAtOnce = 10

export class AreaOfSqlite implements Change {
  readonly #database: DatabaseSync
  readonly #area: Area
  readonly #prefix: string
  readonly #insertEntry: StatementSync
  readonly #insertLine: StatementSync
  readonly #insertMovement: StatementSync
  readonly #insertMovements: StatementSync
  #movements: Value[] = []
  #waiting = 0

  constructor(database: DatabaseSync, area: Area) {
    this.#database = database
    this.#area = area
    this.#prefix = prefixes[area]
    // An entry that another part has is removed there first.
    this.#insertEntry = this.#insert('entries', 1, 'or ignore')
    this.#insertLine = this.#insert('entry_lines', 1)
    this.#insertMovement = this.#insert('movement_rows', 1)
    this.#insertMovements = this.#insert('movement_rows', movementsAtOnce)
  }

  async append(part: Part, lines: Uint8Array): Promise<Counts> {
    const counts = { entries: 0, movements: 0, removed: 0 }
    for (const line of linesOf(lines)) {
      const rows = entryRows(line, part)
      this.#addEntry(rows, line)
      counts.entries += 1
      counts.movements += rows.movements.length
    }
    this.#flush()
    return counts
  }

  async replace(
    part: Part,
    ranges: readonly EntryRange[],
    lines: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<Counts> {
    const total: Counts = { entries: 0, movements: 0, removed: this.#removeRanges(part, ranges) }
    for await (const chunk of lines) {
      const { entries, movements } = await this.append(part, chunk)
      total.entries += entries
      total.movements += movements
    }
    return total
  }

  async setCollections(collections: Collections): Promise<void> {
    for (const [table, rows] of collectionRows(collections)) {
      this.#database.exec(`delete from ${this.#prefix}${table}`)
      const insert = this.#insert(table, 1)
      for (const row of rows) insert.run(...row)
    }
  }

  async setState(state: State): Promise<void> {
    this.#database
      .prepare('insert or replace into sync_state (area, state) values (?, ?)')
      .run(this.#area, JSON.stringify(state))
  }

  #insert(name: string, rows: number, conflict = ''): StatementSync {
    const { columns } = tables.find((table) => table.name === name)!
    const row = `(${columns.map(() => '?').join(', ')})`
    const values = Array.from({ length: rows }, () => row).join(', ')
    return this.#database.prepare(`insert ${conflict} into ${this.#prefix}${name} values ${values}`)
  }

  #addEntry({ id, entry, movements }: EntryRows, line: Uint8Array): void {
    if (this.#insertEntry.run(...entry).changes === 0) {
      this.#flush()
      this.#removeEntry(id)
      this.#insertEntry.run(...entry)
    }
    this.#insertLine.run(id, line)
    for (const movement of movements) {
      this.#movements.push(...movement)
      this.#waiting += 1
      if (this.#waiting === movementsAtOnce) this.#flush()
    }
  }

  #flush(): void {
    const values = this.#movements
    if (this.#waiting === movementsAtOnce) this.#insertMovements.run(...values)
    else {
      const width = values.length / this.#waiting
      for (let at = 0; at < values.length; at += width)
        this.#insertMovement.run(...values.slice(at, at + width))
    }
    this.#movements = []
    this.#waiting = 0
  }

  #removeEntry(id: number): void {
    for (const table of ['movement_rows', 'entry_lines', 'entries'])
      this.#database.prepare(`delete from ${this.#prefix}${table} where entry_id = ?`).run(id)
  }

  /** @returns the number of entries */
  #removeRanges({ exercice, draft }: Part, ranges: readonly EntryRange[]): number {
    if (ranges.length === 0) return 0
    const prefix = this.#prefix
    const removed = `from ${prefix}entries where entry_id between ? and ? and exercice_id = ? and draft = ?`
    const statements = ['movement_rows', 'entry_lines'].map((table) =>
      this.#database.prepare(`delete from ${prefix}${table} where entry_id in (select entry_id ${removed})`),
    )
    const ofEntries = this.#database.prepare(`delete ${removed}`)
    let entries = 0
    for (const [from, to] of ranges) {
      const values = [BigInt(from), BigInt(to), BigInt(exercice), draft ? 1 : 0] as const
      for (const statement of statements) statement.run(...values)
      entries += Number(ofEntries.run(...values).changes)
    }
    return entries
  }
}
