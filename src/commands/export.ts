import { command } from '../../packages/terminal/src/command.ts'
import { cancel } from '../jobs/end.ts'
import { jobStates } from '../jobs/job.ts'
import { findRecord } from '../jobs/jobs.sql.ts'
import { exportFacts, exportList } from '../lists/exports.ts'
import { checkLine } from './terminal/check-line.ts'
import { idKind, mostOption } from './terminal/kinds.ts'
import { factLines } from './terminal/list-lines.ts'
import type { Terminal } from './terminal/terminal.ts'
import { asOwner, printList, userOfMachine } from './with-database.ts'

export const exportCommands = [
  command({
    name: 'export list',
    summary: 'list the newest exports',
    options: {
      folder: { value: 'id', is: idKind, help: 'exports of one folder' },
      state: { value: 'state', choices: jobStates, help: 'exports in one state' },
      most: mostOption,
    },
    run: (terminal: Terminal, { folder, ...options }) =>
      printList(terminal, exportList, { folderId: folder, ...options }),
  }),
  command({
    name: 'export show',
    summary: 'show one export',
    arguments: { id: { help: 'as export list shows it' } },
    run: (terminal: Terminal, { id }) => show(terminal, id),
  }),
  command({
    name: 'export cancel',
    summary: 'end one that is queued or running',
    arguments: { id: { help: 'as export list shows it' } },
    options: { reason: { value: 'reason', help: 'shown in its status' } },
    run: (terminal: Terminal, { id, ...options }) => cancelOne(terminal, id, options),
  }),
]

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
