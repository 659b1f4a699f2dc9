import { CopyRows } from '../../db/copy-rows.ts'
import { renderDictionary } from '../../formats/mad/dictionary.ts'
import { wholeEntryColumns } from '../../formats/mad/entry.ts'
import { movementColumns } from '../../formats/mad/movement.ts'
import { readDictionaryOfEntry } from '../../ledger/dictionary.sql.ts'
import { readNamedEntry } from '../../ledger/named-entry.sql.ts'
import type { ChunkBuffer } from '../chunk-buffer.ts'
import { copyEntries, copyMovements, type ResolvedSelection } from '../read/movements.sql.ts'
import type { Snapshot } from '../read/snapshot.ts'
import { Tally } from '../render/count-chunks.ts'
import { itemFramings } from '../render/framing.ts'
import { renderEntries } from '../render/render-entries.ts'
import { wholeFolder } from '../selection.ts'
import type { EntryTask, Produced } from './task.ts'

/**
 * Produces one entry with its movements, as the export of entries does (docs/spec/exports.md#one-entry). Nothing that
 * it reads grows with the folder: of what entries refer to, it reads only what this one does.
 */
export async function produceEntry(
  { first, second }: Snapshot,
  { named, timeZone, form }: EntryTask,
  buffer: ChunkBuffer,
): Promise<Produced> {
  const { cursor, id, exerciceId } = await readNamedEntry(first, named, timeZone)
  const exerciceIds = [exerciceId]
  const resolved: ResolvedSelection = {
    selection: wholeFolder(named, timeZone),
    exerciceIds,
    accountIds: undefined,
    after: undefined,
    segments: [{ exerciceIds, least: id, greatest: id, dense: true }],
  }
  const dictionary = renderDictionary(await readDictionaryOfEntry(second, named, { id, exerciceId }))
  const movements = first.query(
    new CopyRows(copyMovements(resolved, movementColumns), movementColumns.length),
  )
  const entries = second.query(
    new CopyRows(copyEntries(resolved, wholeEntryColumns), wholeEntryColumns.length),
  )
  const tally = new Tally()
  const framing = itemFramings[form]
  const chunks = renderEntries(entries, movements, 'selected', dictionary, framing, buffer, tally)
  return { head: { cursor }, chunks, rows: () => tally.entries }
}
