/** Fiscal years (docs/spec/resources.md#exercice). */
import { z } from 'zod'
import { JsonNumber } from '../minor-units.ts'
import type { FolderKey } from '../rows.ts'
import * as column from './table.ts'
import { day, id, idOrNull, named, oneOf, text, textOrNull } from './values.ts'

export const exerciceTable = column.table('exercices', {
  id: column.id,
  startDate: column.plain,
  endDate: column.plain,
  lettering: column.column<'MONO' | 'MULTI'>('plain'),
  closedAt: column.orNull(column.plain),
  closedById: column.orNull(column.plain),
  closedByFirstName: column.orNull(column.text),
  closedByLastName: column.orNull(column.text),
})
type ExerciceRow = column.RowOf<typeof exerciceTable>
export interface ExerciceView
  extends Omit<ExerciceRow, keyof FolderKey | 'startDate' | 'endDate' | 'closedAt'> {
  /** Both days inclusive, `YYYY-MM-DD`. */
  start: string
  end: string
  /** The day on which the year was closed, in the time zone of the platform, `YYYY-MM-DD`; null if it is open. */
  closedOn: string | null
}

export const Exercice = named('Exercice', {
  producerId: id,
  name: text.meta({ description: 'N, N-1, N+1…', example: 'N' }),
  period: named('ExercicePeriod', {
    start: day,
    end: day,
    duration: z
      .instanceof(JsonNumber, { error: 'a number of months is expected' })
      .meta({ type: 'integer', description: 'Months' }),
    closed: named('Closing', {
      at: day,
      by: named('Closer', { producerId: idOrNull, firstName: textOrNull, lastName: textOrNull }),
    }).nullable(),
  }),
  state: oneOf(['open', 'closed']).meta({ id: 'ExerciceState' }),
  additionalProducerProperties: named('ExerciceProperties', {
    lettering: oneOf(['MONO', 'MULTI']).meta({ id: 'LetteringSpan' }),
  }),
})
export type FileExercice = z.output<typeof Exercice>

/**
 * Names the years of a folder in order. `N` is the year that contains today, or else the latest year that has started.
 * If no year has started, the first is `N+1`.
 * @param exercices ascending by start
 */
export function exerciceItems(exercices: ExerciceView[], today: string): z.input<typeof Exercice>[] {
  const current = exercices.findLastIndex(({ start, end }) => start <= today && today <= end)
  const latest = exercices.findLastIndex(({ start }) => start <= today)
  const n = current === -1 ? latest : current
  return exercices.map((exercice, i) => exerciceItem(exercice, nameOf(i - n)))
}

function nameOf(distance: number): string {
  if (distance === 0) return 'N'
  return distance < 0 ? `N${distance}` : `N+${distance}`
}

function exerciceItem(exercice: ExerciceView, name: string): z.input<typeof Exercice> {
  const { id, start, end, lettering, closedOn } = exercice
  const by = {
    producerId: exercice.closedById,
    firstName: exercice.closedByFirstName,
    lastName: exercice.closedByLastName,
  }
  return {
    producerId: id,
    name,
    period: {
      start,
      end,
      duration: new JsonNumber(String(monthsOf(start, end))),
      closed: closedOn === null ? null : { at: closedOn, by },
    },
    state: closedOn === null ? 'open' : 'closed',
    additionalProducerProperties: { lettering },
  }
}

/** The number of months from the first to the last day. A partial month counts: 2024-01-01 to 2024-12-31 is 12. */
export function monthsOf(start: string, end: string): number {
  const [fromYear, fromMonth, fromDay] = start.split('-').map(Number) as [number, number, number]
  const [toYear, toMonth, toDay] = end.split('-').map(Number) as [number, number, number]
  return (toYear - fromYear) * 12 + toMonth - fromMonth + (toDay >= fromDay ? 1 : 0)
}

/**
 * The instant of a closing, for files that give only its day. Noon is used because it exists on every day in every time
 * zone.
 */
export const closedAtNoon = (day: string, timeZone: string) => `${day} 12:00:00 ${timeZone}`

export function exerciceRow(
  { producerId, period, additionalProducerProperties }: FileExercice,
  timeZone: string,
): column.FileRow<typeof exerciceTable> {
  const { start, end, closed } = period
  return {
    id: producerId,
    startDate: start,
    endDate: end,
    lettering: additionalProducerProperties.lettering,
    closedAt: closed && closedAtNoon(closed.at, timeZone),
    closedById: closed?.by.producerId ?? null,
    closedByFirstName: closed?.by.firstName ?? null,
    closedByLastName: closed?.by.lastName ?? null,
  }
}
