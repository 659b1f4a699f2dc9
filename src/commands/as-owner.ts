import type { PoolClient } from 'pg'
import { type Config, readConfig } from '../config.ts'
import { type Database, openDatabase } from '../db/database.ts'
import { createPool, inTransaction } from '../db/pool.ts'

/**
 * Runs a staff command: settings, database (started where nothing runs yet), one transaction as the owner of the
 * tables. What it gives back is printed only once the transaction is committed.
 */
export async function asOwner(
  run: (client: PoolClient, config: Config, database: Database) => Promise<string[]>,
): Promise<void> {
  const config = readConfig()
  const database = await openDatabase(config)
  const pool = createPool(database.ownerUrl, { max: 1, applicationName: 'grandlivre cli' })
  try {
    const lines = await inTransaction(pool, (client) => run(client, config, database))
    process.stdout.write(lines.map((line) => `${line}\n`).join(''))
  } finally {
    await pool.end()
    await database.close()
  }
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
