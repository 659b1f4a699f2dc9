import { Argument, type Command } from 'commander'
import { setMaintenance } from '../auth/maintenance.sql.ts'
import type { Terminal } from './terminal/terminal.ts'
import { asOwner, recordAct } from './with-database.ts'

export function addMaintenanceCommand(program: Command, terminal: Terminal): void {
  program
    .command('maintenance')
    .description('answer every authenticated request with 503, or stop doing so')
    .addArgument(new Argument('<state>').choices(['on', 'off']))
    .action((state: 'on' | 'off') =>
      asOwner(terminal, async (client) => {
        await setMaintenance(client, state === 'on')
        await recordAct(client, { act: `maintenance ${state}` })
        return [`Maintenance is ${state}.`]
      }),
    )
}
