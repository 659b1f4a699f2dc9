/**
 * The bulk loader: loads rows in the text format of COPY, many at a time.
 *
 * A writer buffers rows as bytes until `flush`, which runs one COPY. Loaders of millions of rows flush every 10,000
 * movements or so: foreign keys and the ledger version are checked at the end of each COPY, and neither side then holds
 * more than one batch.
 */

import type { ClientBase } from 'pg'
import { from } from 'pg-copy-streams'
import { queryValue } from '../db/statement.ts'
import { type Address, addressFields } from '../formats/items/accounts/address.ts'
import { type Column, columnName, type Encoding, type Given, type TableOf } from '../formats/items/table.ts'

/** The temporary table in which a replacement compares a file with the ledger. It has no foreign keys. */
export const compared = <Row>(table: TableOf<Row>): TableOf<Row> => ({
  ...table,
  schema: 'pg_temp',
  name: `filed_${table.name}`,
})

/** The encodings that convert a value. Ids and references are written as they are. */
type Written = Exclude<Encoding, 'plain' | 'id' | 'reference'>

/** The number of characters buffered before they are encoded: enough for one fast pass, and few enough to be cheap. */
const charactersPerChunk = 64 * 1024

/**
 * Buffers rows of one table and loads them by COPY, in the client's transaction. Nothing is loaded before `flush`, and
 * a rollback removes everything. Members that may be null may be absent.
 */
export class TableWriter<Row, Shared extends Partial<Row> = object> {
  readonly #client: ClientBase
  readonly #table: TableOf<Row>
  readonly #columns: [member: string, Written | 'plain'][]
  readonly #copy: string
  /** The fields that all rows share, as text. */
  readonly #beginning: string
  #text = ''
  #chunks: Buffer[] = []
  #chunkBytes = 0
  #rows = 0

  /** @param shared the ids that all rows have, such as those of their folder */
  constructor(client: ClientBase, table: TableOf<Row>, shared?: Shared) {
    this.#client = client
    this.#table = table
    const first = Object.keys(shared ?? {})
    this.#columns = Object.entries<Column<unknown>>(table.columns)
      .filter(([member]) => !first.includes(member))
      .map(([member, { encoding }]) => [
        member,
        encoding === 'id' || encoding === 'reference' ? 'plain' : encoding,
      ])
    const columns = [...first, ...this.#columns.map(([member]) => member)].map(columnName)
    this.#copy = `copy ${table.schema ?? 'grandlivre'}.${table.name} (${columns.join(', ')}) from stdin`
    this.#beginning = Object.values(shared ?? {}).join('\t')
  }

  /** @throws {Error} naming table and column if a text contains the character NUL, which PostgreSQL cannot store */
  add(row: Given<Omit<Row, keyof Shared>>): void {
    let line = this.#beginning
    for (const [member, encoding] of this.#columns) {
      const value = (row as Partial<Record<string, unknown>>)[member]
      if (line !== '') line += '\t'
      if (value === null || value === undefined) line += '\\N'
      else if (encoding === 'plain') line += value
      else {
        const text = encode(value, encoding)
        if (text === undefined)
          throw new Error(
            `${this.#table.name}.${member} contains the character NUL (U+0000), which cannot be stored: remove it`,
          )
        line += text
      }
    }
    this.#text += `${line}\n`
    this.#rows += 1
    if (this.#text.length >= charactersPerChunk) this.#encodeText()
  }

  /** The number of bytes that the next flush will send. The last few rows count in characters. */
  get pendingBytes(): number {
    return this.#chunkBytes + this.#text.length
  }

  /** The number of rows that the next flush will load. */
  get pendingRows(): number {
    return this.#rows
  }

  /**
   * Loads the rows added so far. Rows added while it runs wait for the next flush.
   * @throws {pg.DatabaseError} if the database refuses the rows; the transaction is then aborted
   */
  flush(): Promise<void> {
    return this.take()()
  }

  /** Takes the rows added so far, and returns a function that loads them later, as `flush` does. */
  take(): () => Promise<void> {
    this.#encodeText()
    const chunks = this.#chunks
    this.#chunks = []
    this.#chunkBytes = 0
    this.#rows = 0
    return () => this.#load(chunks)
  }

  async #load(chunks: Buffer[]): Promise<void> {
    if (chunks.length === 0) return
    // The batch is in memory, so it is written at once. pipeline() is not used: if the database refuses rows,
    // pipeline() destroys the stream, and pg-copy-streams then waits for a response that never comes.
    await new Promise<void>((resolve, reject) => {
      const copy = this.#client.query(from(this.#copy))
      copy.on('error', reject).on('finish', resolve)
      for (const chunk of chunks) copy.write(chunk)
      copy.end()
    })
  }

  #encodeText(): void {
    if (this.#text === '') return
    const chunk = Buffer.from(this.#text)
    this.#chunks.push(chunk)
    this.#chunkBytes += chunk.length
    this.#text = ''
  }
}

/** The number of movements in the first batch of a large load, before `analyzeWhileLoading`. */
export const movementsBeforeAnalyze = 1_000

/** With this number of rows, the planner sees that an index over all rows costs more than the key of one row. */
const entriesAnalyzedMin = 1_000

/**
 * Call it in the loading transaction, after a small first batch of entries and movements. For each row, PostgreSQL
 * looks up the rows that it refers to, and plans that lookup from its statistics. If these say that tables are empty,
 * it takes any index that begins with the folder, and then reads all entries of the folder loaded so far for each
 * further movement. 600,000 movements took more than ten minutes that way, instead of half a minute.
 *
 * Only tables without statistics are analyzed. An analysis blocks others until its transaction ends, so every other
 * import and seed would wait for the longest one.
 */
export async function analyzeWhileLoading(client: ClientBase): Promise<void> {
  const isKnown = `select reltuples >= $1 from pg_class where oid = 'grandlivre.entries'::regclass`
  if (await queryValue<boolean>(client, isKnown, [entriesAnalyzedMin])) return
  await client.query(`analyze grandlivre.accounts, grandlivre.payments, grandlivre.journals, grandlivre.exercices,
    grandlivre.entries, grandlivre.movements`)
}

/**
 * Updates the planner's statistics. Otherwise the planner would take an exercice of a million entries for an empty one.
 */
export async function analyzeLedger(client: { query(text: string): Promise<unknown> }): Promise<void> {
  await client.query(
    `analyze grandlivre.entries, grandlivre.movements, grandlivre.accounts, grandlivre.companies,
       grandlivre.journals, grandlivre.events`,
  )
}

/** Encodes a value that is not null as a COPY field. Undefined if a text in the value contains NUL. */
function encode(value: unknown, encoding: Written): string | undefined {
  switch (encoding) {
    case 'text':
      return escapeField(value as string)
    case 'boolean':
      return value ? 't' : 'f'
    case 'bigints':
      return `{${(value as bigint[]).join(',')}}`
    case 'texts':
      return escapeField(`{${(value as string[]).map(quoted).join(',')}}`)
    case 'address':
      return escapeField(addressLiteral(value as Address))
    case 'json': {
      const json = JSON.stringify(value)
      // In JSON text, an escaped NUL follows an even number of backslashes. jsonb cannot store it either.
      return /(?<!\\)(?:\\\\)*\\u0000/.test(json) ? undefined : escapeField(json)
    }
  }
}

const escapes: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }

function escapeField(text: string): string | undefined {
  if (!/[\\\t\n\r\0]/.test(text)) return text
  if (text.includes('\0')) return undefined
  return text.replace(/[\\\t\n\r]/g, (character) => escapes[character]!)
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** Writes an address in the text form of the composite type `address`. */
function addressLiteral(address: Address): string {
  const fields = addressFields.map((field) => address[field])
  return `(${fields.map((field) => (field === null ? '' : quoted(field))).join(',')})`
}
