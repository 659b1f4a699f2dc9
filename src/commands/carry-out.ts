import type { Act, Secret } from '../acts/act.ts'
import { loadMasterKey } from '../auth/master-key.ts'
import type { StaffTerminal } from './terminal/terminal.ts'
import { asOwner, userOfMachine } from './with-database.ts'

/** Carries out an act of staff in a transaction, and prints what it did. */
export function carryOut<Field extends string>(act: Act<Field>) {
  return async (terminal: StaffTerminal, given: Partial<Record<Field, unknown>>): Promise<void> => {
    const run = act(given)
    await asOwner(terminal, async (client, config) => {
      const masterKey = await loadMasterKey(config)
      const { says, secret } = await run(client, { staff: userOfMachine(), masterKey })
      return secret ? [says, ...secretLines(secret)] : [says]
    })
  }
}

export function secretLines({ label, value, use }: Secret): string[] {
  return [`${label}: ${value}`, `It is shown only once. ${use}`]
}
