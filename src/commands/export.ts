import { type Command, Option } from 'commander'
import { cancel } from '../jobs/end.ts'
import { type JobState, jobStates } from '../jobs/job.ts'
import { type ExportRecord, findRecord, listExports } from '../jobs/jobs.sql.ts'
import { checkId, checkMost } from './terminal/check-id.ts'
import { checkLine } from './terminal/check-line.ts'
import { table } from './terminal/table.ts'
import type { Terminal } from './terminal/terminal.ts'
import { asOwner, userOfMachine } from './with-database.ts'

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

async function list(
  terminal: Terminal,
  options: { folder?: string; state?: JobState; most: string },
): Promise<void> {
  const most = checkMost(options.most)
  await asOwner(terminal, async (client) => {
    const found = await listExports(client, {
      folderId: options.folder,
      state: options.state,
      most,
    })
    const rows = found.map((each) => [
      each.id,
      each.folderId,
      each.compression === null ? each.format : `${each.format}+${each.compression}`,
      each.state,
      String(each.attempt),
      `${each.rows}/${each.rowsTotal ?? '?'}`,
      each.createdAt,
    ])
    return table(['ID', 'FOLDER', 'FORMAT', 'STATE', 'ATTEMPT', 'MOVEMENTS', 'TRIGGERED'], rows)
  })
}

function show(terminal: Terminal, id: string): Promise<void> {
  return asOwner(terminal, async (client) => {
    const found = await findRecord(client, id)
    if (!found) throw unknown(id)
    return table(...described(found))
  })
}

function described(found: ExportRecord): [string[], string[][]] {
  const lines: [string, string | null][] = [
    ['tenant', found.schemaId],
    ['folder', found.folderId],
    ['format', found.format],
    ['compression', found.compression],
    ['encoding', found.encoding],
    ['columns', found.columns],
    ['state', found.state],
    ['request', found.requestId],
    ['attempt', String(found.attempt)],
    ['movements', `${found.rows} of ${found.rowsTotal ?? 'as yet uncounted'}`],
    ['content bytes', found.bytes],
    ['triggered', found.createdAt],
    ['last renewed', found.renewedAt],
    ['ended', found.finishedAt],
    ['file', found.fileKey],
    ['file bytes', found.fileBytes],
    ['file sha256', found.fileSha256],
    ['content sha256', found.sha256],
    ['notes', found.notes && JSON.stringify(found.notes)],
    ['reason', found.reason],
  ]
  return [['export', found.id], lines.flatMap(([name, value]) => (value === null ? [] : [[name, value]]))]
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
