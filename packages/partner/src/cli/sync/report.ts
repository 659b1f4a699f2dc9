/** What a run tells, as lines of a terminal. */
import { countText, secondsText } from '../../../../terminal/src/amounts.ts'
import type { EntryRange } from '../../client/changes.ts'
import type { Run, SyncEvent } from '../../sync/events.ts'
import type { Call } from '../command.ts'

/** Ranges named before the rest is counted. */
const shownMax = 5

/** @param isFollowing each ledger that was copied is a result of its own */
export function reportOf({ terminal, json }: Call, isFollowing: boolean): Run['onEvent'] {
  const total = { differing: 0, done: 0, rows: 0 }
  return (event) => {
    if (event.kind === 'listed') Object.assign(total, { differing: event.differing, done: 0, rows: 0 })
    if (event.kind === 'rows') total.rows += event.rows
    if (event.kind === 'copied' || event.kind === 'failed') total.done += 1
    if (event.kind === 'listed' || event.kind === 'rows') {
      const ledgers = `${countText(total.done)} of ${countText(total.differing)} ledgers`
      if (total.differing > 0)
        terminal.progress(`${ledgers}, ${countText(total.rows)} rows`, total.done / total.differing)
    } else if (event.kind === 'compared')
      terminal.progress(`Comparing ${event.society}: ${countText(event.rows)} movements are equal`)
    else if (json) terminal.json({ time: new Date().toISOString(), ...event })
    else if (['gone', 'back', 'waiting'].includes(event.kind)) terminal.note(noteOf(event as Noted))
    else if (event.kind !== 'copied') terminal.warn(noteOf(event))
    else if (isFollowing) terminal.print(`${event.at}  ${event.society} ${event.name}: ${changeText(event)}`)
  }
}

function changeText({
  since,
  entries,
  rows_before,
  rows_after,
  ms,
}: Extract<SyncEvent, { kind: 'copied' }>): string {
  const took = secondsText(ms)
  if (since === null) return `copied in full, ${countText(rows_after)} movements; ${took}`
  if (entries.length === 0) return `no movements changed; ${took}`
  return `${countText(rows_before)} movements replaced by ${countText(rows_after)}, entries ${rangesText(entries)}; ${took}`
}

type Noted = Exclude<SyncEvent, { kind: 'listed' | 'rows' | 'compared' | 'copied' }>

function noteOf(event: Noted): string {
  switch (event.kind) {
    case 'gone':
      return `${event.society}: no longer among the folders of its firm. Its rows stay in the tables, and leave the views`
    case 'back':
      return `${event.society}: among the folders of its firm again`
    case 'failed':
      return `${event.society}: ${event.message} (${event.code}). Its rows stay as they are`
    case 'stray':
      return `${event.society}: the copy has rows of it, and does not know the folder`
    case 'unproven':
      return `${event.society}: not proven: ${event.reason}`
    case 'waiting':
      return `${event.reason}; asking again in ${secondsText(event.ms)}`
    case 'differs': {
      const parts: string[] = [...event.tables]
      if (event.entries.length > 0) parts.push(`movements of the entries ${rangesText(event.entries)}`)
      return `${event.society} differs: ${parts.join(', ')}`
    }
  }
}

function rangesText(ranges: readonly EntryRange[]): string {
  const shown = ranges.slice(0, shownMax).map(([from, to]) => (from === to ? from : `${from} to ${to}`))
  const more = ranges.length - shown.length
  return `${shown.join(', ')}${more > 0 ? ` and ${countText(more)} more ranges` : ''}`
}
