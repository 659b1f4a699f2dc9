import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { openDatabase } from '../db/database.ts'
import { createPool } from '../db/pool.ts'
import { readVersion } from '../db/version.sql.ts'

export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .description('bring the database to the version of this code')
    .action(async () => {
      // Opening it is migrating it: the service does the same at each start, where its login may.
      const database = await openDatabase(readConfig())
      const pool = createPool(database.ownerUrl, { max: 1, applicationName: 'grandlivre cli' })
      try {
        process.stdout.write(`The database is at version ${await readVersion(pool)}, that of this code.\n`)
      } finally {
        await pool.end()
        await database.close()
      }
    })
}
