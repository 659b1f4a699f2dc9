/** The staff commands. An error is one line on `err` and exit code 1. */
import { Command, CommanderError } from 'commander'
import { addAuditCommands } from './audit/audit-commands.ts'
import { addEventCommands } from './event.ts'
import { addExportCommands } from './export.ts'
import { addFailoverCommand } from './failover/failover-command.ts'
import { addImportCommands } from './import/import-commands.ts'
import { addInspectCommands } from './inspect.ts'
import { addMaintenanceCommand } from './maintenance.ts'
import { addMigrateCommand } from './migrate.ts'
import { addConsoleCommands } from './operators/console-key.ts'
import { addPartnerCommands } from './partner.ts'
import { printLines } from './terminal/lines.ts'
import { createProgressBar } from './terminal/progress-bar.ts'
import type { Output, Terminal } from './terminal/terminal.ts'
import { addTokenCommands } from './token.ts'
import { addWebhookCommands } from './webhook.ts'
import { Interruption } from './with-database.ts'

type AddCommands = (program: Command, terminal: Terminal) => void

/**
 * Runs one command to its end.
 * @param argv its arguments, such as `['token', 'list']`
 * @param addMore adds the commands that are not the service's own
 * @returns the exit code. Above 128 it means that a signal ended the command (128 + its number). The command may still
 *   be waiting for the database, so the process must then exit.
 */
export async function runCli(argv: string[], terminal: Terminal, addMore: AddCommands): Promise<number> {
  const { err } = terminal
  try {
    await commandsOf(terminal, addMore).parseAsync(argv, { from: 'user' })
    return 0
  } catch (error) {
    // Help, wrong arguments or problems of a file: already printed.
    if (error instanceof CommanderError) return error.exitCode
    createProgressBar(err).clear()
    printLines(err, linesOf(error instanceof Error ? error.message : String(error)))
    return error instanceof Interruption ? error.exitCode : 1
  }
}

/** The tree of the commands, for their help and their run. */
export function commandsOf(terminal: Terminal, addMore: AddCommands): Command {
  const { out, err } = terminal
  const program = new Command('npm run cli --')
    .description('Grandlivre, for its staff. The settings are those of the service (see the README).')
    .showHelpAfterError('(--help lists the commands and options)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => printLines(out, linesOf(text)),
      writeErr: (text) => printLines(err, linesOf(text)),
      getOutHelpWidth: () => widthOf(out),
      getErrHelpWidth: () => widthOf(err),
    })
  addMigrateCommand(program, terminal)
  addImportCommands(program, terminal)
  addMore(program, terminal)
  addPartnerCommands(program, terminal)
  addTokenCommands(program, terminal)
  addExportCommands(program, terminal)
  addInspectCommands(program, terminal)
  addWebhookCommands(program, terminal)
  addEventCommands(program, terminal)
  addAuditCommands(program, terminal)
  addConsoleCommands(program, terminal)
  addMaintenanceCommand(program, terminal)
  addFailoverCommand(program, terminal)
  return program
}

function linesOf(text: string): string[] {
  return text.replace(/\n$/, '').split('\n')
}

/** Commander's default width if the output is not a terminal. */
function widthOf({ isTTY, columns }: Output): number {
  return (isTTY && columns) || 80
}
