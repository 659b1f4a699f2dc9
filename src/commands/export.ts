import { cancelExport, exportOf } from '../acts/exports.ts'
import { jobStates } from '../jobs/job.ts'
import { listExports } from '../jobs/jobs.sql.ts'
import { exportFacts, exportList } from '../lists/exports.ts'
import { actCommand, ownerCommand } from './staff-command.ts'
import { idKind, mostOption } from './terminal/kinds.ts'
import { factLines, listLines } from './terminal/list-lines.ts'

export const exportCommands = [
  ownerCommand({
    name: 'export list',
    summary: 'list the newest exports',
    options: {
      folder: { value: 'id', is: idKind, help: 'exports of one folder' },
      state: { value: 'state', choices: jobStates, help: 'exports in one state' },
      most: mostOption,
    },
    lines: async (client, { folder, ...options }) =>
      listLines(exportList, await listExports(client, { folderId: folder, ...options })),
  }),
  ownerCommand({
    name: 'export show',
    summary: 'show one export',
    arguments: { id: { help: 'as export list shows it' } },
    lines: async (client, { id }) => factLines(exportFacts(await exportOf(client, id))),
  }),
  actCommand(cancelExport, 'end one that is queued or running', 'id'),
]
