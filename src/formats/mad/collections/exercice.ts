/** Fiscal years of a full export (docs/spec/resources.md#exercice). */
import type { ExerciceView } from '../../collection-rows.ts'

/**
 * The years of a folder in order. `N` is the year that contains today, or else the latest that has started. If none has
 * started, the first is `N+1`.
 * @param exercices ascending by start
 */
export function exerciceItems(exercices: ExerciceView[], today: string): object[] {
  const current = exercices.findLastIndex(({ start, end }) => start <= today && today <= end)
  const latest = exercices.findLastIndex(({ start }) => start <= today)
  const n = current === -1 ? latest : current
  return exercices.map((exercice, i) => exerciceItem(exercice, nameOf(i - n)))
}

function nameOf(distance: number): string {
  if (distance === 0) return 'N'
  return distance < 0 ? `N${distance}` : `N+${distance}`
}

function exerciceItem(exercice: ExerciceView, name: string): object {
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
      duration: monthsOf(start, end),
      closed: closedOn === null ? null : { at: closedOn, by },
    },
    state: closedOn === null ? 'open' : 'closed',
    additionalProducerProperties: { lettering },
  }
}

/** Months from the first to the last day, including a partial one: 2024-01-01 to 2024-12-31 is 12. */
export function monthsOf(start: string, end: string): number {
  const [fromYear, fromMonth, fromDay] = start.split('-').map(Number) as [number, number, number]
  const [toYear, toMonth, toDay] = end.split('-').map(Number) as [number, number, number]
  return (toYear - fromYear) * 12 + toMonth - fromMonth + (toDay >= fromDay ? 1 : 0)
}
