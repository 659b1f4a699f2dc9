import type { PoolClient } from 'pg'
import type { Config } from '../config.ts'
import type { Database } from '../db/database.ts'
import { inTransaction } from '../db/pool.ts'
import { withDatabase } from './with-database.ts'

/**
 * Runs a staff command in one transaction as the owner of the tables. What it gives back is printed only once the
 * transaction is committed.
 */
export function asOwner(
  run: (client: PoolClient, config: Config, database: Database) => Promise<string[]>,
): Promise<void> {
  return withDatabase(async ({ pool, config, database }) => {
    const lines = await inTransaction(pool, (client) => run(client, config, database))
    process.stdout.write(lines.map((line) => `${line}\n`).join(''))
  })
}

/** Rows under a heading, in columns as wide as their longest value. */
export function table(heading: string[], rows: string[][]): string[] {
  const lines = [heading, ...rows]
  const widths = heading.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  return lines.map((line) =>
    line
      .map((value, column) => value.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
