/** Rows of the audit (docs/operators/audit.md): what they hold, appending and reading them. */
import { createHash } from 'node:crypto'
import type { ClientBase, Pool, QueryConfig } from 'pg'
import { limits } from '../config.ts'
import { readByCursor } from '../db/cursor.ts'
import { type Connection, queryRow, queryRows, queryValue } from '../db/statement.ts'

export type Details = Record<string, string | number | boolean | null>

/** What staff did. Ids are decimal digits. */
export interface StaffAct {
  /** The user of the command, or `console <key name>`. The login of the database is added. */
  staff: string
  /** `token issue` */
  act: string
  thirdPartyId?: string | undefined
  tokenId?: string | undefined
  schemaId?: string | null | undefined
  folderId?: string | null | undefined
  /** What else it concerned. No secrets, and nothing of books. */
  details?: Details
}

/** A row as it is kept. Numbers, ids and hashes as texts: decimal digits, hexadecimal. */
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
 * JSON with the members of objects in the order of their names and without those that are undefined: equal values have
 * equal texts, within one process and across versions.
 */
export function canonicalJson(value: unknown): string {
  const text = JSON.stringify(value, (_, member: unknown) => {
    if (member === null || typeof member !== 'object' || Array.isArray(member)) return member
    return Object.fromEntries(Object.entries(member).toSorted(([one], [other]) => (one < other ? -1 : 1)))
  })
  if (text.length <= charactersMax) return text
  return JSON.stringify({ characters: text.length, sha256: createHash('sha256').update(text).digest('hex') })
}

/** A place in the chain: the number of a row, and its hash, hexadecimal. */
export interface Link {
  count: string
  hash: string
}

export interface Head extends Link {
  /** The epoch of the last row. */
  epoch: string
}

/** Where the chain begins: the last row that retention has deleted. */
export interface Start extends Link {
  /** Seconds since 1970 with six decimals; null while nothing was deleted. */
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

export interface AuditSelection {
  folderId?: string | undefined
  thirdPartyId?: string | undefined
  from?: Date | undefined
  to?: Date | undefined
  most: number
}

/** The newest rows of a selection, the newest first. As the owner. */
export function listAudit(client: Connection, { folderId, thirdPartyId, from, to, most }: AuditSelection) {
  const text = `select ${auditColumns}, (select t.code from grandlivre.third_parties t where t.id = third_party_id) as "partnerCode"
     from grandlivre.audit_rows
     where ($1::bigint is null or folder_id = $1) and ($2::bigint is null or third_party_id = $2)
       and ($3::timestamptz is null or at >= $3) and ($4::timestamptz is null or at < $4)
     order by audit_rows.number desc limit $5`
  return queryRows<ListedAuditRow>(client, text, [folderId, thirdPartyId, from, to, most])
}

/** All rows in their order, by a cursor. As the owner, in a transaction. */
export function readAudit(client: ClientBase): AsyncGenerator<AuditRow[]> {
  const text = `select ${auditColumns} from grandlivre.audit_rows order by audit_rows.number`
  return readByCursor<AuditRow>(client, text, [], 1000)
}

/** The first statement of a transaction: all others see the database as it is now. */
export async function readOneState(client: ClientBase): Promise<void> {
  await client.query('set transaction isolation level repeatable read, read only')
}

/** As the owner. */
export function readHead(client: ClientBase) {
  const text = `select count::text, encode(hash, 'hex') as hash, epoch::text from grandlivre.audit_head`
  return queryRow<Head>(client, text)
}

/** As the owner. */
export function countAudit(client: ClientBase) {
  return queryValue<number>(client, 'select count(*)::float8 from grandlivre.audit_rows')
}

/** As the owner. */
export function readStart(client: ClientBase) {
  const text = `select count::text, encode(hash, 'hex') as hash, extract(epoch from at)::text as at, signature from grandlivre.audit_start`
  return queryRow<Start>(client, text)
}

/** One batch of a process, as JSON. */
export interface Batch {
  /** UUID of the process. */
  sender: string
  /** Rises with each batch. */
  number: number
  /** Members have the names of the columns. */
  rows: object[]
}

/** Appends a batch, unless it was appended before. As the service role. */
export async function appendRequests(database: Pool, { sender, number, rows }: Batch): Promise<void> {
  await database.query({
    text: 'select grandlivre.append_requests($1, $2, $3)',
    values: [JSON.stringify(rows), sender, number],
    // A server that hangs is away, too. pg accepts this for a single query; its types do not declare it.
    query_timeout: limits.databaseConnectMs,
  } as QueryConfig)
}

/**
 * Records an act in its own transaction, as the owner. It must be the last statement: other acts and the requests of all
 * processes wait from here to the commit. So what is deferred to the commit runs before.
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

/** The last of the oldest rows, `most` at most, that are all older than `months`. As the service role. */
export function readExpired(database: Pool, months: number, most: number) {
  const text = `select count::text, encode(hash, 'hex') as hash from grandlivre.expired_audit($1, $2)`
  return queryRow<Link>(database, text, [months, most])
}

/** As the owner. */
export async function updateStartSignature(client: ClientBase, signature: Buffer): Promise<void> {
  await client.query('update grandlivre.audit_start set signature = $1', [signature])
}

/**
 * Deletes the rows up to one, and writes the signed start of the rest. Returns their number. As the service role.
 * @param last as `readExpired` gives it
 */
export function forgetAudit(client: ClientBase, last: Link, at: Date, signature: Buffer, months: number) {
  const text = 'select grandlivre.forget_audit($1, $2, $3, $4)::integer'
  return queryValue<number>(client, text, [last.count, at, signature, months])
}
