/** The parts of a copy that use the same statements in SQLite and PostgreSQL. */
import { type CopiedFolder, type Diary, type LedgerChange, refused } from './copy.ts'
import { diaryNames, tableNames } from './tables.ts'

type Row = Record<string, unknown>

const filledTables = [...tableNames, 'changes']

/**
 * Finds the folders that have rows in a table. The query jumps from folder to folder by the key and does not read all
 * rows.
 */
const foldersIn = (table: string): string => `
  select id from (
    with recursive present(id) as (
      select min(society_id) from ${table}
      union all
      select (select min(t.society_id) from ${table} t where t.society_id > p.id) from present p where p.id is not null
    ) select id from present) in_${table}`

export abstract class SqlCopy {
  readonly name: string
  readonly #locked: Set<string>
  readonly #idsOf: string
  #service: string | undefined

  /** @param idsOf a query that turns its parameter, a list of ids as JSON, into rows with the column `id` */
  constructor(name: string, service: unknown, locked: Set<string> | undefined, idsOf: string) {
    this.name = name
    this.#service = (service as string | null) ?? undefined
    this.#locked = locked ?? new Set()
    this.#idsOf = idsOf
  }

  /** Runs a query. @param values of the parameters $1, $2 and so on */
  protected abstract query(sql: string, values?: readonly unknown[]): Promise<Row[]>
  /** Runs a change in a transaction of its own. Without values it may consist of several statements. */
  protected abstract write(sql: string, values?: readonly unknown[]): Promise<Row[]>
  /** @throws {GrandlivreError} COPY-LOCKED */
  protected abstract lockFirm(firm: string): Promise<void>

  get service(): string | undefined {
    return this.#service
  }

  async adopt(service: string): Promise<void> {
    const adopted = await this.write(
      'update grandlivre_copy set service = $1 where service is null or service = $1 returning service',
      [service],
    )
    if (adopted.length === 0)
      throw refused(`${this.name} has just become a copy of another service`, 'Choose another --to.')
    this.#service = service
  }

  async lock(firms: readonly string[]): Promise<void> {
    for (const firm of firms) {
      if (this.#locked.has(firm)) continue
      await this.lockFirm(firm)
      this.#locked.add(firm)
    }
  }

  async folders(): Promise<CopiedFolder[]> {
    const noted = diaryNames.filter((name) => name !== 'firm_id').join(', ')
    const rows = await this.query(
      `select cast(f.society_id as text) as society, cast(f.firm_id as text) as firm_id, ${noted}
       from folders f order by f.society_id`,
    )
    return rows.map((row) => {
      for (const name of diaryNames) if (row[name] instanceof Date) row[name] = row[name].toISOString()
      return { ...row, table_digests: digestsIn(row['table_digests']) } as CopiedFolder
    })
  }

  async note(societies: readonly string[], diary: Partial<Diary>): Promise<void> {
    if (societies.length > 0) await this.write(...this.#noting(societies, diary))
  }

  /** The statement that writes the diaries of folders, and its values. */
  #noting(societies: readonly string[], diary: Partial<Diary>): [sql: string, values: unknown[]] {
    const names = diaryNames.filter((name) => diary[name] !== undefined)
    const set = names.map((name) => `${name} = excluded.${name}`)
    return [
      `insert into folders (${['society_id', ...names].join(', ')})
       select ${['s.id', ...names.map((_, place) => `$${place + 2}`)].join(', ')} from (${this.#idsOf}) s where true
       on conflict (society_id) do ${set.length === 0 ? 'nothing' : `update set ${set.join(', ')}`}`,
      [JSON.stringify(societies), ...names.map((name) => stored(diary[name]))],
    ]
  }

  /** Notes what the open transaction did to a ledger. */
  protected async noteCommit(society: string, diary: Partial<Diary>, change: LedgerChange | null) {
    await this.query(...this.#noting([society], diary))
    if (!change) return
    const { at, cursor, entries, rows_before, rows_after } = change
    await this.query(
      `insert into changes (society_id, at, cursor, entries, rows_before, rows_after) values ($1, $2, $3, $4, $5, $6)`,
      [BigInt(society), at, cursor, JSON.stringify(entries), rows_before, rows_after],
    )
  }

  async strays(): Promise<string[]> {
    const rows = await this.query(
      `select cast(s.id as text) as society from (${filledTables.map(foldersIn).join(' union ')}) s
       where s.id is not null and s.id not in (select society_id from folders where firm_id is not null) order by s.id`,
    )
    return rows.map(({ society }) => society as string)
  }

  async remove(society: string): Promise<void> {
    const id = BigInt(society)
    const isKnown = `exists (select 1 from folders f where f.society_id = ${id} and f.firm_id is not null)`
    await this.write(
      filledTables
        .map((table) => `delete from ${table} where society_id = ${id} and not ${isKnown}`)
        .join(';'),
    )
  }
}

/** A value as it is written. Digests become JSON. Dates, which come from PostgreSQL, go back unchanged. */
const stored = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !(value instanceof Date) ? JSON.stringify(value) : value

/** The digests in the diary. If somebody has damaged them, the only effect is that their tables are read again. */
function digestsIn(noted: unknown): Diary['table_digests'] {
  if (typeof noted !== 'string') return noted ?? {}
  try {
    return JSON.parse(noted) ?? {}
  } catch {
    return {}
  }
}
