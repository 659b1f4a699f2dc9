/** The clock of the database, and the time limits of statements for metrics. */
import type { ClientBase } from 'pg'
import { lookUp, queryValue } from '../db/statement.ts'

/** The database ends a statement after this time, so that a scrape that nobody waits for any more does not load it. */
const statementMs = 1_000
/** The connection is given up after this time: a silent server does not end the statement. */
const answerMs = 2_000

/** Limits the time of every statement in the rest of a transaction. */
export async function boundStatements(client: ClientBase): Promise<void> {
  await client.query(lookUp({ text: `set local statement_timeout = ${statementMs}`, waitMs: answerMs }))
}

/** The clock of the database server, epoch milliseconds. */
export async function readClock(client: ClientBase): Promise<number> {
  const text = 'select (extract(epoch from clock_timestamp()) * 1000)::float8'
  return queryValue(client, lookUp({ text, waitMs: answerMs }))
}
