import { command } from '../../packages/terminal/src/command.ts'
import { cancelExport, exportOf } from '../acts/exports.ts'
import { jobStates } from '../jobs/job.ts'
import { exportFacts, exportList } from '../lists/exports.ts'
import { carryOut } from './carry-out.ts'
import { idKind, mostOption } from './terminal/kinds.ts'
import { factLines } from './terminal/list-lines.ts'
import type { StaffTerminal } from './terminal/terminal.ts'
import { asOwner, printList } from './with-database.ts'

export const exportCommands = [
  command({
    name: 'export list',
    summary: 'list the newest exports',
    options: {
      folder: { value: 'id', is: idKind, help: 'exports of one folder' },
      state: { value: 'state', choices: jobStates, help: 'exports in one state' },
      most: mostOption,
    },
    run: (terminal: StaffTerminal, { folder, ...options }) =>
      printList(terminal, exportList, { folderId: folder, ...options }),
  }),
  command({
    name: 'export show',
    summary: 'show one export',
    arguments: { id: { help: 'as export list shows it' } },
    run: (terminal: StaffTerminal, { id }) =>
      asOwner(terminal, async (client) => factLines(exportFacts(await exportOf(client, id)))),
  }),
  command({
    name: 'export cancel',
    summary: 'end one that is queued or running',
    arguments: { id: { help: 'as export list shows it' } },
    options: { reason: { value: 'reason', help: 'shown in its status' } },
    run: carryOut(cancelExport),
  }),
]
