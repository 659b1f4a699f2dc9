/**
 * The two COPY statements of an export of some ranges of entry ids. Each range is a look-up in the key of entries, and
 * each entry is a look-up in the key of movements, so the cost grows with the ranges and their entries, not with the
 * folder.
 *
 * Otherwise the planner might read another index once per range: the index of accounts by exercice, if the exercice is
 * not in the statistics (31 s for 100 ranges of 600,000 movements). So each look-up asks for the order that only its
 * key has, in a transaction where the planner avoids sorts (`beginLookUps`), and `offset 0` keeps conditions on other
 * columns out.
 */

import type pg from 'pg'
import { idArrayLiteral } from '../../db/literal.ts'
import { queryWithout } from '../../db/statement.ts'
import { type EntryRange, multirangeLiteral } from '../../ledger/changes/entry-ranges.ts'
import {
  copyOf,
  entriesAfter,
  entryConditions,
  entryList,
  inExercices,
  inFolder,
  joinEntries,
  movementConditions,
  movementList,
  movementsAfter,
  picksMovements,
  type ReadColumns,
  type ResolvedSelection,
} from './movements.sql.ts'

/** From now on the transaction of the client looks ranges up in their keys. */
export async function beginLookUps(client: pg.ClientBase): Promise<void> {
  await client.query('set local enable_sort = off')
}

/** The statements for the selected movements and entries in these ranges. */
export function copyRanges(
  ranges: readonly EntryRange[],
  resolved: ResolvedSelection,
  { entryColumns, movementColumns }: ReadColumns,
) {
  const { selection, after } = resolved
  const ofEntry = entryConditions(selection)
  const ofMovement = [...ofEntry, ...movementConditions(resolved), ...movementsAfter(after)]
  const entries = entriesOf(ranges, resolved)
  return {
    // Entries without a selected movement are included.
    entries: copyOf(
      `select ${entryList(entryColumns, selection.timeZone)} from ${entries}
       ${where([...ofEntry, ...entriesAfter(after)])} order by e.id`,
    ),
    // The movements are sorted: the ranges are few compared with a year.
    movements: copyOf(
      `select ${movementList(movementColumns)} from ${entries} ${movementsOf(resolved)}
       ${where(ofMovement)} order by m.entry_id, m.id`,
    ),
  }
}

/** Entries `e` in these ranges, of the exercices of the selection. */
function entriesOf(ranges: readonly EntryRange[], resolved: ResolvedSelection): string {
  return `unnest(${multirangeLiteral(ranges)}) ids cross join lateral (
      select e.* from entries e
      where ${inExercices('e', resolved).join(' and ')} and e.id >= lower(ids) and e.id < upper(ids)
      order by e.id offset 0
    ) e`
}

/**
 * Movements `m` of an entry `e`. The condition is not `m.entry_id = e.id`: it would give the order of movement ids
 * alone, which another index has, too.
 */
function movementsOf({ selection }: ResolvedSelection): string {
  return `cross join lateral (
      select m.* from movements m
      where ${inFolder('m', selection)} and m.exercice_id = e.exercice_id and m.entry_id between e.id and e.id
      order by m.entry_id, m.id offset 0
    ) m`
}

function where(conditions: string[]): string {
  return conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
}

/**
 * Whether the ranges hold more than a tenth of the selection: of its entries, or of its movements if few of each entry
 * are selected. Counting the selection stops at ten times the rows of the ranges, so this costs no more than the
 * answer.
 */
export async function readMuchChanged(
  client: pg.ClientBase,
  resolved: ResolvedSelection & { exerciceIds: string[] },
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

/** The rows of these exercices. They are planned apart from the limit, as in changed-entries.sql.ts. */
function ofExercices(
  alias: 'e' | 'm',
  conditions: string[],
  { selection, exerciceIds }: ResolvedSelection & { exerciceIds: string[] },
): string {
  const all = [inFolder(alias, selection), `${alias}.exercice_id = exercice`, ...conditions]
  return `unnest(${idArrayLiteral(exerciceIds)}) exercice cross join lateral (
    select ${alias}.* from ${alias === 'e' ? 'entries' : 'movements'} ${alias} ${where(all)} offset 0
  ) ${alias}`
}
