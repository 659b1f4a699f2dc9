/**
 * Selects movements or entries of the folder: the parameters of docs/spec/exports.md#movements, with the names of this
 * library.
 */
import type { queryValues } from './api/routes.ts'
import { clientError } from './errors.ts'
import type { QueryValue } from './requests.ts'

type Values = (typeof queryValues)['/mad/movements']

interface OfExercice {
  /** `producerId` of the exercice. */
  exercice: string
  startDate?: never
  endDate?: never
  dateFilter?: never
}

interface OfPeriod {
  exercice?: never
  /** `YYYY-MM-DD`, included. */
  startDate: string
  /** `YYYY-MM-DD`, included; less than twelve months after `startDate`. */
  endDate: string
  /** Which date of an entry must lie in the period. Default: `document`. */
  dateFilter?: Values['dateFilter'][number]
}

interface Filters {
  /** True selects only drafts; otherwise only validated entries are selected. */
  draft?: boolean
  /** A source code (docs/spec/resources.md#source-codes). */
  source?: string
}

export type MovementSelection = (OfExercice | OfPeriod) &
  Filters & {
    /** Roots of account numbers. */
    classAccount?: string | readonly string[]
    lettering?: Values['lettering'][number]
  }
export type EntrySelection = (OfExercice | OfPeriod) &
  Filters & {
    journalIds?: string | readonly string[]
    /** Additional members to include in entries and their movements. */
    columns?: (typeof queryValues)['/mad/entries']['columns'][number]
  }

/** The items of a stream, as the path of the route names them. */
export type Streamed = 'movements' | 'entries'

const shared = ['exercice', 'startDate', 'endDate', 'dateFilter', 'draft', 'source']
const known: Record<Streamed, string[]> = {
  movements: [...shared, 'classAccount', 'lettering'],
  entries: [...shared, 'journalIds', 'columns'],
}

/**
 * The query of a selection.
 * @throws {GrandlivreError} INVALID-OPTION for an unknown name or an empty text, since such a filter would select
 *   everything
 */
export function queryOf(
  selection: MovementSelection | EntrySelection,
  streamed: Streamed,
): Record<string, QueryValue> {
  const unknown = Object.keys(selection).filter((name) => !known[streamed].includes(name))
  if (unknown.length > 0)
    throw clientError(
      'INVALID-OPTION',
      `A selection of ${streamed} has no ${unknown.join(', ')}; it has ${known[streamed].join(', ')}`,
    )
  const empty = Object.entries(selection).flatMap(([name, value]) => (value === '' ? [name] : []))
  if (empty.length > 0)
    throw clientError('INVALID-OPTION', `${empty.join(', ')} of the selection is empty; leave it out`)
  const { exercice, ...others } = selection
  return { version: '1.0.0', ...(exercice === undefined ? {} : { idExercice: exercice }), ...others }
}
