import { command } from '../../../packages/terminal/src/command.ts'
import { setMaintenance } from '../../auth/callers.sql.ts'
import { latestMigration } from '../../db/migrations/migrate.ts'
import { readVersion } from '../../db/migrations/version.sql.ts'
import { ownerCommand } from '../staff-command.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { recordAct, withDatabase } from '../with-database.ts'

export const migrateCommand = command({
  name: 'migrate',
  summary: 'migrate the database to the version of this code',
  // Opening the database migrates it. The service does the same at each start if its login may migrate.
  run: (terminal: StaffTerminal) =>
    withDatabase(terminal, async ({ pool }) => {
      const { version } = await readVersion(pool)
      const ours = await latestMigration()
      const comparison =
        version === ours ? 'that of this code' : `which this code, of version ${ours}, can use`
      terminal.print([`The database is at version ${version}, ${comparison}.`])
    }),
})

export const maintenanceCommand = ownerCommand({
  name: 'maintenance',
  summary: 'answer every authenticated request with 503, or stop doing so',
  arguments: { state: { choices: ['on', 'off'], help: 'whether maintenance is on' } },
  lines: async (client, { state }) => {
    await setMaintenance(client, state === 'on')
    await recordAct(client, { act: `maintenance ${state}` })
    return [`Maintenance is ${state}.`]
  },
})
