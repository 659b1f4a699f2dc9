/** Which movements a pull reads, from the options of the command; and which exercice a year means. */
import type { Given } from '../../../../terminal/src/command.ts'
import { UsageError } from '../../../../terminal/src/command-errors.ts'
import type { Exercice as LedgerExercice } from '../../client/api/items.ts'
import { queryValues } from '../../client/api/routes.ts'
import type { Grandlivre } from '../../client/grandlivre.ts'
import type { MovementSelection } from '../../client/selection.ts'
import { refusedFailure } from '../exit-codes.ts'

const valuesOf = queryValues['/mad/movements']

export const selectionOptions = {
  exercice: {
    value: 'id or year',
    help: 'an id; a calendar year in which one exercice starts or ends; or N, N-1 ... as the service names them',
  },
  from: {
    value: 'day',
    help: 'first day of a period of less than 12 months, YYYY-MM-DD; instead of --exercice',
  },
  to: { value: 'day', help: 'last day of the period' },
  'date-filter': {
    value: 'date',
    choices: valuesOf.dateFilter,
    help: 'the date that must lie in the period; otherwise document',
  },
  draft: { help: 'only drafts, instead of only validated entries' },
  'class-account': {
    value: 'roots',
    several: true,
    help: 'only accounts whose numbers begin with one of these: 60,61',
  },
  lettering: { value: 'state', choices: valuesOf.lettering, help: 'only movements of this state' },
  source: { value: 'code', help: 'only entries of this source' },
} as const

export type Exercice = Pick<LedgerExercice, 'producerId' | 'name' | 'period'>

/**
 * Reads the options before the ledger is asked.
 * @returns a function that makes the selection; it gets the exercice that the options name, if they name one
 * @throws {UsageError} unless the options describe one selection
 */
export function wantedMovements(
  given: Given<unknown, typeof selectionOptions>,
): (exercice: Exercice | undefined) => MovementSelection {
  const { exercice: word, from: startDate, to: endDate, 'date-filter': dateFilter } = given
  const { draft, 'class-account': roots, lettering, source } = given
  const filters = {
    ...(draft ? { draft } : {}),
    ...(roots === undefined ? {} : { classAccount: roots.flatMap((root) => root.split(',')) }),
    ...(lettering === undefined ? {} : { lettering }),
    ...(source === undefined ? {} : { source }),
  }
  if (word !== undefined) {
    const other = ['from', 'to', 'date-filter'].find((name) => name in given)
    if (other !== undefined) throw new UsageError(`--exercice and --${other} exclude each other`)
    return (exercice) => ({ exercice: exercice!.producerId, ...filters })
  }
  if (startDate === undefined && endDate === undefined)
    throw new UsageError('Name what to pull: --exercice <id or year>, or --from and --to, or --all')
  if (startDate === undefined || endDate === undefined)
    throw new UsageError(
      `--from and --to belong together; --${startDate === undefined ? 'from' : 'to'} is missing`,
    )
  const period = { startDate, endDate, ...(dateFilter === undefined ? {} : { dateFilter }) }
  return () => ({ ...period, ...filters })
}

/**
 * @throws {UsageError} if the word may mean several exercices, which it lists
 * @throws {Failure} if the word means none; it lists all exercices
 */
export async function findExercice(word: string, ledger: Grandlivre, signal: AbortSignal): Promise<Exercice> {
  const exercices = await ledger.get('/mad/exercices', { signal })
  const found = matching(word, exercices)
  if (found.length === 1) return found[0]!
  if (found.length > 1)
    throw new UsageError(
      `--exercice ${word} may mean any of these; give the id of one:`,
      found.map(exerciceLine),
    )
  if (exercices.length === 0) throw refusedFailure('The folder has no exercice')
  throw refusedFailure(`The folder has no exercice ${word}`, ['It has:', ...exercices.map(exerciceLine)])
}

/**
 * The exercices that the word may mean. Ids come first, so that a program that gives an id always gets that exercice;
 * then names, then years.
 */
export function matching(word: string, exercices: Exercice[]): Exercice[] {
  const named = exercices.filter(({ producerId }) => producerId === word)
  if (named.length > 0) return named
  if (/^N([+-]\d+)?$/i.test(word)) return exercices.filter(({ name }) => name === word.toUpperCase())
  return exercices.filter(({ period }) => [period.start, period.end].some((day) => day.slice(0, 4) === word))
}

function exerciceLine({ producerId, name, period: { start, end } }: Exercice): string {
  return `  ${producerId}  ${start} to ${end}  ${name}`
}
