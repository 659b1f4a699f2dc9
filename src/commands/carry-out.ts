import { type Act, Refused, type Secret } from '../acts/act.ts'
import { loadMasterKeys } from '../auth/master-key.ts'
import type { StaffTerminal } from './terminal/terminal.ts'
import { asOwner, userOfMachine } from './with-database.ts'

/**
 * Carries out an act of staff in a transaction, and prints what it did.
 * @param words of the command line for fields of the act: `--` and the field, and for an id its place, if not given
 */
export function carryOut<Field extends string>(act: Act<Field>, words: Partial<Record<Field, string>> = {}) {
  return async (terminal: StaffTerminal, given: Partial<Record<Field, unknown>>): Promise<void> => {
    const run = actOfWords(act, given, { id: '<id>', ...words })
    await asOwner(terminal, async (client, config) => {
      const masterKeys = await loadMasterKeys(config)
      const { says, secret } = await run(client, { staff: userOfMachine(), masterKeys })
      return secret ? [says, ...secretLines(secret)] : [says]
    })
  }
}

/** @throws {Error} that names the word of the command line that is wrong */
function actOfWords<Field extends string>(
  act: Act<Field>,
  given: Partial<Record<Field, unknown>>,
  words: Record<string, string>,
) {
  try {
    return act(given)
  } catch (error) {
    if (!(error instanceof Refused) || error.field === undefined) throw error
    throw new Error(`${words[error.field] ?? `--${error.field}`} ${error.message}`, { cause: error })
  }
}

export function secretLines({ label, value, use }: Secret): string[] {
  return [`${label}: ${value}`, `It is shown only once. ${use}`]
}
