import type pg from 'pg'
import { idArrayLiteral } from '../../../db/literal.ts'
import { queryWithout } from '../../../db/look-up.ts'
import type { EntryRange } from '../../../ledger/changes/entry-ranges.ts'
import {
  entryConditions,
  inFolder,
  joinEntries,
  movementConditions,
  picksMovements,
  type ResolvedSelection,
} from '../movements.sql.ts'
import type { Resolved } from '../selected.sql.ts'
import { entriesOf, movementsOf, where } from './copy-ranges.sql.ts'

/**
 * Whether the ranges hold more than a tenth of the selection: of its entries, or of its movements if few of each entry
 * are selected. The selection is counted up to ten times what they hold, so this costs no more than the answer.
 */
export async function readMuchChanged(
  client: pg.ClientBase,
  resolved: ResolvedSelection & Pick<Resolved, 'exerciceIds'>,
  ranges: readonly EntryRange[],
): Promise<boolean> {
  const ofMovements = picksMovements(resolved)
  const ofEntry = entryConditions(resolved.selection)
  const ofMovement = ofMovements ? movementConditions(resolved) : []
  const [found] = await queryWithout<{ much: boolean }>(
    client,
    ['seqscan', 'bitmapscan', 'sort'],
    `with changed as materialized (
       select count(*) as rows from ${entriesOf(ranges, resolved)} ${ofMovements ? movementsOf(resolved) : ''}
       ${where([...ofEntry, ...ofMovement])}
     )
     select 10 * changed.rows > (
       select count(*) from (
         select from ${
           ofMovements
             ? `${ofExercices('m', ofMovement, resolved)} ${joinEntries} ${where(ofEntry)}`
             : ofExercices('e', ofEntry, resolved)
         }
         limit (select 10 * rows from changed)
       ) as counted
     ) as much
     from changed`,
  )
  return found!.much
}

/** Planned apart from the limit, as in changed-entries.sql.ts. */
function ofExercices(
  alias: 'e' | 'm',
  conditions: string[],
  { selection, exerciceIds }: ResolvedSelection & Pick<Resolved, 'exerciceIds'>,
): string {
  const all = [...inFolder(alias, selection), `${alias}.exercice_id = exercice`, ...conditions]
  return `unnest(${idArrayLiteral(exerciceIds)}) exercice cross join lateral (
    select ${alias}.* from ${alias === 'e' ? 'entries' : 'movements'} ${alias} ${where(all)} offset 0
  ) ${alias}`
}
