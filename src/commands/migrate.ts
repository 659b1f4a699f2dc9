import type { Command } from 'commander'
import { readVersion } from '../db/version.sql.ts'
import { withDatabase } from './with-database.ts'

export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .description('bring the database to the version of this code')
    .action(() =>
      // Opening it is migrating it: the service does the same at each start, where its login may.
      withDatabase(async ({ pool }) => {
        process.stdout.write(`The database is at version ${await readVersion(pool)}, that of this code.\n`)
      }),
    )
}
