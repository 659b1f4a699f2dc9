import { type Command, Option } from 'commander'
import { cancel } from '../jobs/end.ts'
import { type JobState, jobStates } from '../jobs/job.ts'
import { findRecord } from '../jobs/jobs.sql.ts'
import { exportFacts, exportList } from '../lists/exports.ts'
import { checkId, checkMost } from './terminal/check-id.ts'
import { checkLine } from './terminal/check-line.ts'
import { factLines } from './terminal/list-lines.ts'
import type { Terminal } from './terminal/terminal.ts'
import { asOwner, printList, userOfMachine } from './with-database.ts'

/** Default number of exports in a list. */
const listed = '50'

export function addExportCommands(program: Command, terminal: Terminal): void {
  const exports = program.command('export').description('full exports of folders')
  exports
    .command('list')
    .description('list the newest exports')
    .option('--folder <id>', 'exports of one folder', checkId)
    .addOption(new Option('--state <state>', 'exports in one state').choices(jobStates))
    .option('--most <number>', 'how many', listed)
    .action((options) => list(terminal, options))
  exports
    .command('show')
    .description('show one export')
    .argument('<id>')
    .action((id) => show(terminal, id))
  exports
    .command('cancel')
    .description('end one that is queued or running')
    .argument('<id>')
    .option('--reason <reason>', 'shown in its status')
    .action((id, options) => cancelOne(terminal, id, options))
}

function list(
  terminal: Terminal,
  { folder, state, most }: { folder?: string; state?: JobState; most: string },
): Promise<void> {
  return printList(terminal, exportList, { folderId: folder, state, most: checkMost(most) })
}

function show(terminal: Terminal, id: string): Promise<void> {
  return asOwner(terminal, async (client) => {
    const found = await findRecord(client, id)
    if (!found) throw unknown(id)
    return factLines(exportFacts(found))
  })
}

async function cancelOne(terminal: Terminal, id: string, { reason }: { reason?: string }): Promise<void> {
  if (reason !== undefined) checkLine('--reason', reason)
  await asOwner(terminal, async (client) => {
    const cancelled = await cancel(client, id, { staff: userOfMachine(), reason: reason?.trim() })
    if (!cancelled) throw unknown(id)
    if (!cancelled.isEnded)
      throw new Error(`The export ${id} is already ${cancelled.found.state} and cannot be cancelled`)
    return [`The export ${id} is cancelled.`]
  })
}

function unknown(id: string): Error {
  return new Error(`There is no export ${id}: see export list`)
}
