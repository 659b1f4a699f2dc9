import type { Command } from 'commander'
import { readVersion } from '../db/version.sql.ts'
import type { Terminal } from './terminal/terminal.ts'
import { withDatabase } from './with-database.ts'

export function addMigrateCommand(program: Command, terminal: Terminal): void {
  program
    .command('migrate')
    .description('migrate the database to the version of this code')
    .action(() =>
      // Opening the database migrates it. The service does the same at each start if its login may.
      withDatabase(terminal, async ({ pool }) => {
        terminal.out.write(`The database is at version ${await readVersion(pool)}, that of this code.\n`)
      }),
    )
}
