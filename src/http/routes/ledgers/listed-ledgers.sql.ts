/** Reads the ledgers that a token may read: their list, their ids, and their present states. */
import type { Pool } from 'pg'
import { idLiteral, textLiteral } from '../../../db/literal.ts'
import { askInTenant } from '../../../db/pool.ts'
import { cursorExpression, renderingOf } from '../../../ledger/changes/cursor.sql.ts'

/** All folders of a firm, or one folder: that of a company token, or the one that a firm token names. */
export type Listed = { schemaId: string; withEmployees: boolean } & (
  | { firmId: string }
  | { folderId: string; ofFirm?: string }
)

/** An SQL condition on a row `f` of folders. */
function isListed(listed: Listed): string {
  const firmId = 'folderId' in listed ? listed.ofFirm : listed.firmId
  const firm = firmId === undefined ? '' : `and f.firm_id = ${idLiteral(firmId)}`
  const folder = 'folderId' in listed ? `and f.id = ${idLiteral(listed.folderId)}` : ''
  return `f.schema_id = ${idLiteral(listed.schemaId)} ${firm} ${folder}`
}

/**
 * Reads the list as JSON texts, ascending by id (docs/spec/ledgers.md#the-list). A single statement reads it, so
 * all ledgers are in one state of the database. The database writes the texts of 3,000 ledgers in 13 ms; as rows they
 * would take 7 ms of the main thread.
 * @param held the tag of the list that the caller has. If it is still the tag, `lines` is null: the list is not
 *   written, which saves 11 of the 13 ms
 * @returns `tag`: 32 hexadecimal digits, equal only for equal lines
 * @throws {AppError} ERR-UNAVAILABLE
 */
export async function readLedgerList(
  pool: Pool,
  listed: Listed,
  timeZone: string,
  held: string,
): Promise<{ tag: string; lines: string | null }> {
  const schemaId = idLiteral(listed.schemaId)
  const rendering = textLiteral(renderingOf(timeZone))
  const [row] = await askInTenant<{ tag: string; lines: string | null }>(
    pool,
    listed.schemaId,
    // The tag includes a cursor of no ledger, which depends on what all cursors depend on: epoch, rendering and key.
    `with listed as materialized (
       select f.id, f.ledger_version, f.name, f.reference,
              (select row_to_json(n) from (select n.id::text, n.name) n) as firm
       from folders f join firms n on (n.schema_id, n.id) = (f.schema_id, f.firm_id)
       where ${isListed(listed)}),
     tagged as (
       select left(encode(sha256(convert_to(concat(ledger_cursor(${schemaId}, 0, 0, ${rendering}), ${listed.withEmployees ? '' : "'without employees', "}
         string_agg(l::text, '' order by id)), 'UTF8')), 'hex'), 32) as tag from listed l)
     select tag, case when position(tag in ${textLiteral(held)}) = 0 then (
       select coalesce(string_agg(row_to_json(l)::text, e'\\n' order by id), '')
       from ledger_cursors(${schemaId}, array(select id from listed order by id),
         array(select ledger_version from listed order by id), ${rendering}) c
       join listed on id = folder_id
       cross join lateral (select id::text as society, firm, name, reference, cursor, ${listed.withEmployees} as employees) l)
       end as lines from tagged`,
  )
  return row!
}

/** Reads the ids, ascending as numbers. */
export async function readListedIds(database: Pool, listed: Listed): Promise<string[]> {
  const text = `select id from folders f where ${isListed(listed)} order by id`
  return (await askInTenant<{ id: string }>(database, listed.schemaId, text)).map(({ id }) => id)
}

/** Reads the cursor of a folder's ledger. Undefined if the folder does not exist, or is not listed. */
export async function readListedCursor(
  database: Pool,
  listed: Listed,
  folderId: string,
  timeZone: string,
): Promise<string | undefined> {
  const text = `select ${cursorExpression(timeZone)} as cursor from folders f
    where ${isListed(listed)} and f.id = ${idLiteral(folderId)}`
  return (await askInTenant<{ cursor: string }>(database, listed.schemaId, text))[0]?.cursor
}
