/**
 * The two COPY statements of an export of some ranges of entry ids. Each range is a look-up in the key of entries, and
 * each entry one in that of movements, so the cost grows with the ranges and their entries, not with the folder.
 *
 * The planner might read another index instead, once per range: that of accounts by exercice, where statistics miss the
 * exercice (31 s for 100 ranges of 600,000 movements). So each look-up asks for the order that only its key has, in a
 * transaction that cannot sort unless it must (`beginLookUps`), and `offset 0` keeps conditions on other columns out.
 */
import type pg from 'pg'
import { idLiteral } from '../../../db/literal.ts'
import { type EntryRange, multirangeLiteral } from '../../../ledger/changes/entry-ranges.ts'
import { type EntryColumn, entryList, type MovementColumn, movementList } from '../columns.sql.ts'
import {
  entryConditions,
  inExercices,
  inFolder,
  movementConditions,
  type ResolvedSelection,
} from '../movements.sql.ts'

/** From now on the transaction of the client looks ranges up in their keys. */
export async function beginLookUps(client: pg.ClientBase): Promise<void> {
  await client.query('set local enable_sort = off')
}

/** Selected movements of the entries in these ranges. They are sorted: the ranges are few compared with a year. */
export function copyMovementsOf(
  ranges: readonly EntryRange[],
  resolved: ResolvedSelection,
  columns: readonly MovementColumn[],
): string {
  const { selection, after } = resolved
  const conditions = [...entryConditions(selection), ...movementConditions(resolved)]
  if (after)
    conditions.push(`(m.entry_id, m.id) > (${idLiteral(after.entryId)}, ${idLiteral(after.movementId)})`)
  return `copy (
    select ${movementList(columns)}
    from ${entriesOf(ranges, resolved)} ${movementsOf(resolved)}
    ${where(conditions)}
    order by m.entry_id, m.id
  ) to stdout`
}

/** Selected entries in these ranges, also those without a selected movement. */
export function copyEntriesOf(
  ranges: readonly EntryRange[],
  resolved: ResolvedSelection,
  columns: readonly EntryColumn[],
): string {
  const { selection, after } = resolved
  const conditions = entryConditions(selection)
  if (after) conditions.push(`e.id >= ${idLiteral(after.entryId)}`)
  return `copy (
    select ${entryList(columns, selection.timeZone)}
    from ${entriesOf(ranges, resolved)}
    ${where(conditions)}
    order by e.id
  ) to stdout`
}

/** Entries `e` in these ranges, of the exercices of the selection. */
export function entriesOf(ranges: readonly EntryRange[], resolved: ResolvedSelection): string {
  return `unnest(${multirangeLiteral(ranges)}) ids cross join lateral (
      select e.* from entries e
      where ${inExercices('e', resolved).join(' and ')} and e.id >= lower(ids) and e.id < upper(ids)
      order by e.id offset 0
    ) e`
}

/**
 * Movements `m` of an entry `e`. Not `m.entry_id = e.id`: the order would then be that of their ids alone, which another
 * index has, too.
 */
export function movementsOf({ selection }: ResolvedSelection): string {
  return `cross join lateral (
      select m.* from movements m
      where ${inFolder('m', selection).join(' and ')} and m.exercice_id = e.exercice_id and m.entry_id between e.id and e.id
      order by m.entry_id, m.id offset 0
    ) m`
}

export function where(conditions: string[]): string {
  return conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
}
