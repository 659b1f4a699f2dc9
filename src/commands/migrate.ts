import type { Command } from 'commander'
import { latestMigration } from '../db/migrations/migrate.ts'
import { readVersion } from '../db/migrations/version.sql.ts'
import { printLines } from './terminal/lines.ts'
import type { Terminal } from './terminal/terminal.ts'
import { withDatabase } from './with-database.ts'

export function addMigrateCommand(program: Command, terminal: Terminal): void {
  program
    .command('migrate')
    .description('migrate the database to the version of this code')
    .action(() =>
      // Opening the database migrates it. The service does the same at each start if its login may.
      withDatabase(terminal, async ({ pool }) => {
        const { version } = await readVersion(pool)
        const ours = await latestMigration()
        const standing =
          version === ours ? 'that of this code' : `which this code, of version ${ours}, can use`
        printLines(terminal.out, [`The database is at version ${version}, ${standing}.`])
      }),
    )
}
