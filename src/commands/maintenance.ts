import { command } from '../../packages/terminal/src/command.ts'
import { setMaintenance } from '../auth/maintenance.sql.ts'
import type { StaffTerminal } from './terminal/terminal.ts'
import { asOwner, recordAct } from './with-database.ts'

export const maintenanceCommand = command({
  name: 'maintenance',
  summary: 'answer every authenticated request with 503, or stop doing so',
  arguments: { state: { choices: ['on', 'off'], help: 'whether it does' } },
  run: (terminal: StaffTerminal, { state }) =>
    asOwner(terminal, async (client) => {
      await setMaintenance(client, state === 'on')
      await recordAct(client, { act: `maintenance ${state}` })
      return [`Maintenance is ${state}.`]
    }),
})
