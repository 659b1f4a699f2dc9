/** Lists the ledgers that a token may read, each with its present state (docs/spec/ledgers.md#the-list). */
import type { Pool } from 'pg'
import { idLiteral, textLiteral } from '../db/literal.ts'
import { askInTenant } from '../db/pool.ts'
import { renderingOf } from './changes/cursor.sql.ts'

/**
 * Which ledgers to list: one folder, or all folders of a firm. `withEmployees` is true if the reader may see personal
 * data of employees.
 */
export type Listed = { schemaId: string; withEmployees: boolean } & (
  | { firmId: string }
  | { folderId: string }
)

/**
 * Reads the list as JSON texts, ascending by id. A single statement reads it, so all ledgers are in one state of the
 * database. The database writes the texts of 3,000 ledgers in 13 ms; as rows they would take 7 ms of the main thread.
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
  const which =
    'folderId' in listed ? `f.id = ${idLiteral(listed.folderId)}` : `f.firm_id = ${idLiteral(listed.firmId)}`
  const schemaId = idLiteral(listed.schemaId)
  const rendering = textLiteral(renderingOf(timeZone))
  const [row] = await askInTenant<{ tag: string; lines: string | null }>(
    pool,
    listed.schemaId,
    // The tag contains a cursor without a ledger, which stands for everything that decides all cursors: epoch,
    // rendering and key.
    `with listed as materialized (
       select f.id, f.ledger_version, f.name, f.reference,
              (select row_to_json(n) from (select n.id::text, n.name) n) as firm
       from folders f join firms n on (n.schema_id, n.id) = (f.schema_id, f.firm_id)
       where f.schema_id = ${schemaId} and ${which}),
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
