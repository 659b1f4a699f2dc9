/** Statements of DuckDB on Parquet files. */
import { textLiteral } from '../../src/db/literal.ts'

/** Names and types of the columns. */
export function listColumns(file: string): string {
  return `select column_name, column_type from (describe select * from ${textLiteral(file)})`
}

/**
 * What is equal in two files with the same rows in any order: their number, exact sums, and a hash of all columns.
 * PostgreSQL writes its JSON with spaces.
 */
export function summarizeRows(file: string): string {
  return `select count(*)::text, sum(debit)::text, sum(credit)::text, bit_xor(md5_number(f::text))::text
    from (select * replace (json(attachments)::text as attachments) from ${textLiteral(file)}) f`
}
