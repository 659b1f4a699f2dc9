/** One-shot commands for staff: `npm run cli -- <command>`. Mistakes are one line and exit code 1. */
import { Command } from 'commander'
import { addEventCommands } from './commands/event.ts'
import { addExportCommands } from './commands/export.ts'
import { addImportCommands } from './commands/import.ts'
import { addInspectCommands } from './commands/inspect.ts'
import { addMaintenanceCommand } from './commands/maintenance.ts'
import { addMigrateCommand } from './commands/migrate.ts'
import { addPartnerCommands } from './commands/partner.ts'
import { addSeedCommand } from './commands/seed.ts'
import { addTokenCommands } from './commands/token.ts'
import { addWebhookCommands } from './commands/webhook.ts'
import { Interruption } from './commands/with-database.ts'

const program = new Command('npm run cli --')
  .description('Grandlivre, for its staff. The settings are those of the service (see the README).')
  .showHelpAfterError('(--help shows what is there)')

addMigrateCommand(program)
addImportCommands(program)
addSeedCommand(program)
addPartnerCommands(program)
addTokenCommands(program)
addExportCommands(program)
addInspectCommands(program)
addWebhookCommands(program)
addEventCommands(program)
addMaintenanceCommand(program)

try {
  await program.parseAsync()
} catch (error) {
  // In place of a progress bar.
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K')
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  if (error instanceof Interruption) process.exit(error.exitCode)
  process.exitCode = 1
}
