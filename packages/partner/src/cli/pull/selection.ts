/** Which movements a pull is about: the options of the command, and the exercice that a year means. */

import type { Given } from '../../../../terminal/src/command.ts'
import { UsageError } from '../../../../terminal/src/command-errors.ts'
import { queryValues } from '../../client/api/routes.ts'
import type { Requests } from '../../client/requests.ts'
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
    help: 'first day of a period instead, YYYY-MM-DD, of less than 12 months',
  },
  to: { value: 'day', help: 'last day of the period' },
  'date-filter': {
    value: 'date',
    choices: valuesOf.dateFilter,
    help: 'the date that the period compares; document otherwise',
  },
  draft: { help: 'only drafts, instead of only validated entries' },
  'class-account': { value: 'roots', several: true, help: 'only accounts that begin so: 60,61' },
  lettering: { value: 'state', choices: valuesOf.lettering, help: 'only movements of this state' },
  source: { value: 'code', help: 'only entries of this source' },
} as const

export interface Exercice {
  producerId: string
  /** `N`, `N-1` ... */
  name: string
  period: { start: string; end: string }
}

/** What the options say before the ledger is asked. */
export interface Wanted {
  /** An id, a year or a name. */
  exercice?: string
  period?: Extract<MovementSelection, { startDate: string }>
  filters: Pick<MovementSelection, 'draft' | 'source' | 'classAccount' | 'lettering'>
}

type Chosen = Given<unknown, typeof selectionOptions>

/** @throws {UsageError} unless the options name one selection */
export function wantedOf(given: Chosen): Wanted {
  const { exercice, from: startDate, to: endDate, 'date-filter': dateFilter } = given
  const filters = filtersOf(given)
  if (exercice !== undefined) {
    const other = ['from', 'to', 'date-filter'].find((name) => name in given)
    if (other !== undefined) throw new UsageError(`--exercice and --${other} exclude each other`)
    return { exercice, filters }
  }
  if (startDate === undefined || endDate === undefined)
    throw new UsageError(
      startDate === undefined && endDate === undefined
        ? 'Name what to pull: --exercice <id or year>, or --from and --to, or --all'
        : `--from and --to belong together; --${startDate === undefined ? 'from' : 'to'} is missing`,
    )
  return { period: { startDate, endDate, ...(dateFilter === undefined ? {} : { dateFilter }) }, filters }
}

function filtersOf({ draft, 'class-account': roots, lettering, source }: Chosen): Wanted['filters'] {
  return {
    ...(draft ? { draft } : {}),
    ...(roots === undefined ? {} : { classAccount: roots.flatMap((root) => root.split(',')) }),
    ...(lettering === undefined ? {} : { lettering }),
    ...(source === undefined ? {} : { source }),
  }
}

/** @returns the selection, and the exercice if it is one */
export async function selectionOf(
  wanted: Wanted,
  requests: Requests,
  signal: AbortSignal,
): Promise<{ selection: MovementSelection; exercice?: Exercice }> {
  const { period, filters } = wanted
  if (period !== undefined) return { selection: { ...period, ...filters } }
  const exercice = await findExercice(wanted.exercice!, requests, signal)
  return { selection: { exercice: exercice.producerId, ...filters }, exercice }
}

/**
 * @throws {UsageError} that lists the exercices that the word may mean
 * @throws {Failure} that lists all, if it means none
 */
export async function findExercice(word: string, requests: Requests, signal: AbortSignal): Promise<Exercice> {
  const { value } = await requests.json({ path: '/mad/exercices', query: { version: '1.0.0' }, signal })
  const exercices = value as Exercice[]
  const found = matching(word, exercices)
  if (found.length === 1) return found[0]!
  if (found.length > 1)
    throw new UsageError(`--exercice ${word} may mean any of these; give the id of one:`, found.map(lineOf))
  if (exercices.length === 0) throw refusedFailure('The folder has no exercice')
  throw refusedFailure(`The folder has no exercice ${word}`, ['It has:', ...exercices.map(lineOf)])
}

/** An id before all else, so that a program that gives one always gets it; then a name, then a year. */
export function matching(word: string, exercices: Exercice[]): Exercice[] {
  const named = exercices.filter(({ producerId }) => producerId === word)
  if (named.length > 0) return named
  if (/^N([+-]\d+)?$/i.test(word)) return exercices.filter(({ name }) => name === word.toUpperCase())
  return exercices.filter(({ period }) => [period.start, period.end].some((day) => day.slice(0, 4) === word))
}

function lineOf({ producerId, name, period: { start, end } }: Exercice): string {
  return `  ${producerId}  ${start} to ${end}  ${name}`
}
