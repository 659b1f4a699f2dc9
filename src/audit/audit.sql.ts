/** Rows of the audit (docs/operators/audit.md): what they contain, and how they are appended and read. */
import { createHash } from 'node:crypto'
import type { ClientBase, Pool, QueryConfig } from 'pg'
import { limits } from '../config.ts'
import { readByCursor } from '../db/cursor.ts'
import { type Connection, queryRow, queryRows, queryValue } from '../db/statement.ts'

export type Details = Record<string, string | number | boolean | null>

/** An act of staff. Ids are decimal digits. */
export interface StaffAct {
  /** The user of the command, or `console <key name>`. The database login is added to it. */
  staff: string
  /** `token issue` */
  act: string
  thirdPartyId?: string | undefined
  tokenId?: string | undefined
  schemaId?: string | null | undefined
  folderId?: string | null | undefined
  /** What else the act concerned. Contains no secrets and no content of books. */
  details?: Details
}

/** A row as it is stored. Numbers and ids are decimal digits, hashes are hexadecimal. */
export interface AuditRow {
  number: string
  /** Seconds since 1970 with six decimals. */
  at: string
  thirdPartyId: string | null
  tokenId: string | null
  staff: string | null
  act: string
  schemaId: string | null
  folderId: string | null
  requestId: string | null
  details: string
  rows: string | null
  bytes: string | null
  sha256: string | null
  cursor: string | null
  outcome: string
  code: string | null
  hash: string
}

/** Longer details are kept as their length and SHA-256: a selection may name thousands of entries. */
const charactersMax = 2_000

/**
 * Returns JSON with the members of objects sorted by name and without undefined members. So equal values have equal
 * texts, in every process and every version.
 */
export function canonicalJson(value: unknown): string {
  const text = JSON.stringify(value, (_, member: unknown) => {
    if (member === null || typeof member !== 'object' || Array.isArray(member)) return member
    return Object.fromEntries(Object.entries(member).toSorted(([one], [other]) => (one < other ? -1 : 1)))
  })
  if (text.length <= charactersMax) return text
  return JSON.stringify({ characters: text.length, sha256: createHash('sha256').update(text).digest('hex') })
}

/** A place in the chain: the number of a row, as decimal digits, and its hash, hexadecimal. */
export interface Link {
  count: string
  hash: string
}

export interface Head extends Link {
  /** The epoch of the last row. */
  epoch: string
}

/** Where the chain begins: the last row that retention has deleted, with its signature. */
export interface Start extends Link {
  /** Seconds since 1970 with six decimals; null if no row has been deleted yet. */
  at: string | null
  signature: Buffer | null
}

const auditColumns = `number::text, extract(epoch from at)::text as at, third_party_id::text as "thirdPartyId",
  token_id::text as "tokenId", staff, act, schema_id::text as "schemaId", folder_id::text as "folderId",
  request_id as "requestId", details, rows::text, bytes::text, sha256, cursor, outcome, code,
  encode(hash, 'hex') as hash`

export interface ListedAuditRow extends AuditRow {
  /** Code of the third party; null if it is gone. */
  partnerCode: string | null
}

interface AuditSelection {
  folderId?: string | undefined
  thirdPartyId?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
  most: number
}

/** Lists the newest rows of a selection, newest first. Runs as the owner. */
export function listAudit(client: Connection, { folderId, thirdPartyId, from, to, most }: AuditSelection) {
  const text = `select ${auditColumns}, (select t.code from grandlivre.third_parties t where t.id = third_party_id) as "partnerCode"
     from grandlivre.audit_rows
     where ($1::bigint is null or folder_id = $1) and ($2::bigint is null or third_party_id = $2)
       and ($3::timestamptz is null or at >= $3) and ($4::timestamptz is null or at < $4)
     order by audit_rows.number desc limit $5`
  return queryRows<ListedAuditRow>(client, text, [folderId, thirdPartyId, from, to, most])
}

/** Reads all rows in their order, through a cursor. Runs as the owner, in a transaction. */
export function readAudit(client: ClientBase): AsyncGenerator<AuditRow[]> {
  const text = `select ${auditColumns} from grandlivre.audit_rows order by audit_rows.number`
  return readByCursor<AuditRow>(client, text, [], 1000)
}

/** Makes all later statements of the transaction see the database as it is now. Must be the first statement. */
export async function readOneState(client: ClientBase): Promise<void> {
  await client.query('set transaction isolation level repeatable read, read only')
}

/** Runs as the owner. */
export function readHead(client: ClientBase) {
  const text = `select count::text, encode(hash, 'hex') as hash, epoch::text from grandlivre.audit_head`
  return queryRow<Head>(client, text)
}

/** Runs as the owner. */
export function countAudit(client: ClientBase) {
  return queryValue<number>(client, 'select count(*)::float8 from grandlivre.audit_rows')
}

/** Runs as the owner. */
export function readStart(client: ClientBase) {
  const text = `select count::text, encode(hash, 'hex') as hash, extract(epoch from at)::text as at, signature from grandlivre.audit_start`
  return queryRow<Start>(client, text)
}

/** A batch of rows from one process, to be sent as JSON. */
export interface Batch {
  /** UUID that the process drew for itself. */
  sender: string
  /** Rises with each batch. */
  number: number
  /** The keys of each row are the names of the columns. */
  rows: object[]
}

/** Appends a batch, unless it was appended before. Runs as the service role. */
export async function appendRequests(database: Pool, { sender, number, rows }: Batch): Promise<void> {
  await database.query({
    text: 'select grandlivre.append_requests($1, $2, $3)',
    values: [JSON.stringify(rows), sender, number],
    // A server that hangs counts as unreachable, too. pg accepts this option for a single query, although its types do
    // not declare it.
    query_timeout: limits.databaseConnectMs,
  } as QueryConfig)
}

/**
 * Records an act in the transaction of the act, as the owner. It must be the last statement, because other acts and the
 * requests of all processes wait from here to the commit. For the same reason, it first runs the triggers that are
 * deferred to the commit: they publish events.
 */
export async function recordStaffAct(client: ClientBase, given: StaffAct): Promise<void> {
  const { staff, act, thirdPartyId, tokenId, schemaId, folderId, details = {} } = given
  const row = {
    act,
    third_party_id: thirdPartyId,
    token_id: tokenId,
    schema_id: schemaId,
    folder_id: folderId,
    details: canonicalJson(details),
    outcome: 'done',
  }
  await client.query('set constraints all immediate')
  const text = `select grandlivre.append_audit($1, $2 || ' as ' || session_user)`
  await client.query(text, [JSON.stringify([row]), staff])
}

/**
 * Finds rows that may be deleted: from the oldest on, at most `most`, all of them older than `months`. Returns the last
 * of them. Runs as the service role.
 */
export function readExpired(database: Pool, months: number, most: number) {
  const text = `select count::text, encode(hash, 'hex') as hash from grandlivre.expired_audit($1, $2)`
  return queryRow<Link>(database, text, [months, most])
}

/** Runs as the owner. */
export async function updateStartSignature(client: ClientBase, signature: Buffer): Promise<void> {
  await client.query('update grandlivre.audit_start set signature = $1', [signature])
}

/**
 * Deletes the rows up to `last`, and writes the signed start of the remaining ones. Returns the number of deleted rows.
 * Runs as the service role.
 * @param last the row that `readExpired` returned
 */
export function forgetAudit(client: ClientBase, last: Link, at: Date, signature: Buffer, months: number) {
  const text = 'select grandlivre.forget_audit($1, $2, $3, $4)::integer'
  return queryValue<number>(client, text, [last.count, at, signature, months])
}
