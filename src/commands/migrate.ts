import type { Command } from 'commander'
import { readVersion } from '../db/version.sql.ts'
import type { Terminal } from './terminal/terminal.ts'
import { withDatabase } from './with-database.ts'

export function addMigrateCommand(program: Command, terminal: Terminal): void {
  program
    .command('migrate')
    .description('bring the database to the version of this code')
    .action(() =>
      // Opening it is migrating it: the service does the same at each start, where its login may.
      withDatabase(terminal, async ({ pool }) => {
        terminal.out.write(`The database is at version ${await readVersion(pool)}, that of this code.\n`)
      }),
    )
}
