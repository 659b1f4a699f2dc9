import type pg from 'pg'
import type { EntryRange } from '../../../ledger/changes/entry-ranges.ts'
import {
  entryConditions,
  inSegment,
  joinEntries,
  movementConditions,
  picksMovements,
  type ResolvedSelection,
} from '../movements.sql.ts'
import { entriesOf, movementsOf, where } from './copy-ranges.sql.ts'

/**
 * Whether the ranges hold more than a tenth of the selection: of its entries, or of its movements if few of each entry
 * are selected. The selection is counted up to ten times what they hold, so this costs no more than the answer.
 */
export async function readMuchChanged(
  client: pg.ClientBase,
  resolved: ResolvedSelection,
  ranges: readonly EntryRange[],
): Promise<boolean> {
  const ofMovements = picksMovements(resolved)
  const conditions = [
    ...entryConditions(resolved.selection),
    ...(ofMovements ? movementConditions(resolved) : []),
  ]
  const changed = `${entriesOf(ranges, resolved)} ${ofMovements ? movementsOf(resolved) : ''}`
  const all = ofMovements ? `movements m ${joinEntries}` : 'entries e'
  const ofSelection = [...inSegment(ofMovements ? 'm' : 'e', resolved), ...conditions]
  const { rows } = await client.query<{ much: boolean }>(
    `with changed as materialized (select count(*) as rows from ${changed} ${where(conditions)})
     select 10 * changed.rows > (
       select count(*) from (
         select from ${all} ${where(ofSelection)} limit (select 10 * rows from changed)
       ) as counted
     ) as much
     from changed`,
  )
  return rows[0]!.much
}
