/** The staff commands. An error prints one line on `err`, and the exit code is 1. */
import type { Command, Program } from '../../packages/terminal/src/command.ts'
import { Failure, UsageError } from '../../packages/terminal/src/command-errors.ts'
import { readCommandLine, usageHints } from '../../packages/terminal/src/words.ts'
import { Refused } from '../acts/act.ts'
import { auditCommands, lostCode } from './audit/audit-commands.ts'
import { eventCommands } from './event.ts'
import { exportCommands } from './export.ts'
import { failoverCommand } from './failover/failover-command.ts'
import { importCommands } from './import/import-commands.ts'
import { inspectTraCommand } from './inspect.ts'
import { consoleKeyCommands } from './operators/console-key.ts'
import { maintenanceCommand, migrateCommand } from './operators/maintenance.ts'
import { rotateKeyCommand } from './operators/rotate-key.ts'
import { statusCommand, unwellCode } from './operators/status.ts'
import { partnerCommands, tokenCommands } from './partner.ts'
import { eraseCommands } from './tenants/erase.ts'
import { tenantCommands } from './tenants/tenants.ts'
import type { StaffTerminal } from './terminal/terminal.ts'
import { webhookCommands } from './webhook.ts'

/** @param more commands that other packages add to those of the service */
export function staffProgram(more: Command<StaffTerminal>[]): Program<StaffTerminal> {
  return {
    call: 'npm run cli --',
    about: 'Grandlivre, for its staff. The settings are those of the service (README).',
    groups: {
      import: 'Ledgers from files.',
      firm: 'Accounting firms.',
      folder: 'The books of one company, which a firm keeps.',
      partner: 'Third parties, which call the service with tokens.',
      token: 'Access tokens.',
      export: 'Full exports of folders.',
      inspect: 'The content of an exported file, and its problems.',
      webhook: 'Subscriptions to events, and their deliveries.',
      event: 'The events that webhooks deliver.',
      audit: 'Who was given what, and what staff did.',
      console: 'The console for browsers (CONSOLE_PORT).',
      'console key': 'Keys with which staff sign in to the console.',
    },
    commands: [
      migrateCommand,
      ...importCommands,
      ...more,
      ...tenantCommands,
      ...partnerCommands,
      ...eraseCommands,
      ...tokenCommands,
      ...exportCommands,
      inspectTraCommand,
      ...webhookCommands,
      ...eventCommands,
      ...auditCommands,
      ...consoleKeyCommands,
      maintenanceCommand,
      failoverCommand,
      statusCommand,
      rotateKeyCommand,
    ],
    options: {},
    exitCodes: [
      ['0', 'done'],
      ['1', 'failed, or wrong usage'],
      [`${unwellCode}`, 'status found what needs the operator'],
      [`${lostCode}`, 'the anchor of audit verify was lost in a failover'],
      ['130, 143', 'interrupted'],
    ],
  }
}

/**
 * Runs one command to its end.
 * @param words the words of its command line, such as `['token', 'list']`
 * @returns the exit code. Above 128 it means that a signal ended the command (128 + its number). The command may still
 *   be waiting for the database, so the process must then exit.
 */
export async function runCli(
  words: string[],
  terminal: StaffTerminal,
  more: Command<StaffTerminal>[],
): Promise<number> {
  const program = staffProgram(more)
  try {
    const read = readCommandLine(program, words)
    if ('help' in read) {
      terminal[read.isAsked ? 'print' : 'note'](read.help)
      return read.isAsked ? 0 : 1
    }
    await read.command.run(terminal, read.given)
    return 0
  } catch (error) {
    const hint = error instanceof Refused ? error.hint : ''
    const message = error instanceof Error ? `${error.message}${hint}` : String(error)
    const hints = error instanceof UsageError ? usageHints(program, words, error) : []
    terminal.note([...message.split('\n'), ...hints])
    return error instanceof Failure ? error.exitCode : 1
  }
}
