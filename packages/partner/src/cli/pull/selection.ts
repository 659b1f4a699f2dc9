/** Which movements a pull is about: the options of the command, and the exercice that a year means. */

import { Failure, UsageError } from '../../../../terminal/src/command-errors.ts'
import { queryValues } from '../../client/api/routes.ts'
import type { Requests } from '../../client/requests.ts'
import type { MovementSelection } from '../../client/selection.ts'
import { textOf, type Values } from '../command.ts'

export const selectionOptions = {
  exercice: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  'date-filter': { type: 'string' },
  draft: { type: 'boolean' },
  'class-account': { type: 'string', multiple: true },
  lettering: { type: 'string' },
  source: { type: 'string' },
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

const valuesOf = queryValues['/mad/movements']

/** @throws {UsageError} unless the options name one selection */
export function wantedOf(values: Values): Wanted {
  const exercice = textOf(values, 'exercice')
  const [startDate, endDate] = [textOf(values, 'from'), textOf(values, 'to')]
  const dateFilter = oneOf(valuesOf.dateFilter, values, 'date-filter')
  const filters = filtersOf(values)
  if (exercice !== undefined) {
    const other = ['from', 'to', 'date-filter'].find((name) => values[name] !== undefined)
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

function filtersOf(values: Values): Wanted['filters'] {
  const roots = values['class-account'] as string[] | undefined
  const lettering = oneOf(valuesOf.lettering, values, 'lettering')
  const source = textOf(values, 'source')
  return {
    ...(values['draft'] === true ? { draft: true } : {}),
    ...(roots === undefined ? {} : { classAccount: roots.flatMap((root) => root.split(',')) }),
    ...(lettering === undefined ? {} : { lettering }),
    ...(source === undefined ? {} : { source }),
  }
}

/** @throws {UsageError} if the option has another value */
export function oneOf<Word extends string>(
  words: readonly Word[],
  values: Values,
  option: string,
): Word | undefined {
  const value = textOf(values, option)
  const found = words.find((word) => word === value)
  if (value !== undefined && found === undefined)
    throw new UsageError(`--${option} takes ${words.join(', ')}, not "${value}"`)
  return found
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
  if (exercices.length === 0) throw new Failure('The folder has no exercice')
  throw new Failure(`The folder has no exercice ${word}`, ['It has:', ...exercices.map(lineOf)])
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
