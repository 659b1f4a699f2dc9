/** The three forms of most staff commands: an act, a list, and lines that are read as the owner of the tables. */
import type { PoolClient } from 'pg'
import { z } from 'zod'
import type {
  Arguments,
  Command,
  Declaration,
  Given,
  Option,
  Options,
} from '../../packages/terminal/src/command.ts'
import { type Act, Refused, type Secret } from '../acts/act.ts'
import type { OptionWords } from '../acts/fields.ts'
import { loadMasterKeys } from '../auth/master-key.sql.ts'
import type { PagedList } from '../lists/list.ts'
import { listLines } from './terminal/list-lines.ts'
import type { StaffTerminal } from './terminal/terminal.ts'
import { asOwner, userOfMachine } from './with-database.ts'

/** A command that runs in one transaction as the owner of the tables, and prints what it read or did there. */
export function ownerCommand<
  const A extends Arguments = Record<never, never>,
  const O extends Options = Record<never, never>,
>({
  lines,
  ...declaration
}: Declaration<A, O> & {
  lines(client: PoolClient, given: Given<A, O>): Promise<string[]>
}): Command<StaffTerminal> {
  const run = (terminal: StaffTerminal, given: Record<string, unknown>) =>
    asOwner(terminal, (client) => lines(client, given as Given<A, O>))
  return { ...(declaration as Declaration<Arguments, Options>), run }
}

/** A command that prints a whole list. */
export function listCommand<Row>(
  name: string,
  summary: string,
  list: PagedList<Row, Record<never, never>>,
): Command<StaffTerminal> {
  return ownerCommand({
    name,
    summary,
    lines: async (client) => listLines(list, await list.read(client, {})),
  })
}

/** @param argument the field that is given by its position; all others are options */
export function actCommand(act: Act, summary: string, argument?: string): Command<StaffTerminal> {
  const options: Options = {}
  const places: Arguments = {}
  for (const [field, schema] of Object.entries(act.shape)) {
    const { required, value, ...taken } = optionOf(field, schema)
    if (field === argument) places[field] = taken
    else options[field] = { ...taken, ...(value && { value }), ...(required && { required }) }
  }
  const run = carryOut(act, argument === undefined ? {} : { [argument]: `<${argument}>` })
  return { name: act.command, summary, arguments: places, options, run }
}

function optionOf(field: string, schema: z.core.$ZodType): Option {
  const isRequired = !z.safeParse(schema, undefined).success
  const inner = schema instanceof z.ZodOptional ? schema.unwrap() : schema
  const words = { ...z.globalRegistry.get(inner), ...z.globalRegistry.get(schema) } as OptionWords
  const { help = '', value = field, takes } = words
  return {
    help,
    ...(!(inner instanceof z.ZodLiteral) && { value }),
    ...(words.default === undefined ? isRequired && { required: true } : { default: words.default }),
    ...(takes && { is: { takes, read: (text: string) => z.safeParse(schema, text).data } }),
    ...(inner instanceof z.ZodEnum && { choices: inner.options.map(String) }),
  }
}

/**
 * Carries out an act of staff in a transaction, and prints what it did.
 * @param words the name of each field in messages; by default `--` and the field's name
 */
export function carryOut<Field extends string>(act: Act<Field>, words: Record<string, string> = {}) {
  return async (terminal: StaffTerminal, given: Partial<Record<Field, unknown>>): Promise<void> => {
    const run = actOfWords(act, given, words)
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
