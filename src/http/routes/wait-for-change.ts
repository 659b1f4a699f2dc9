import type { Selected } from '../../exports/read/selected.sql.ts'
import type { Selection } from '../../exports/selection.ts'
import type { FolderCall } from '../route.ts'
import { findSelected } from './find-selected.ts'

/**
 * Looks up a selection as soon as the folder's ledger has another state than the caller's, or when the time is over
 * (docs/spec/changes.md#waiting). A waiting request holds no slot and no connection of the database; it takes a slot
 * once there is something to send. Those in line for a slot count as waiting, so that there is a limit to them, too.
 * @param since the caller's cursor
 * @returns at once, without a slot, if the cursor is refused
 * @throws {AppError} as findSelected; ERR-UNAVAILABLE also if too many requests wait
 */
export async function waitForChange(
  { services, folderId, slot }: Pick<FolderCall<never>, 'services' | 'folderId' | 'slot'>,
  selection: Selection,
  since: string,
  waitSeconds: number,
): Promise<Selected> {
  const deadline = performance.now() + waitSeconds * 1000
  // Watched before it is looked up, so that no change in between is missed.
  using watch = await services.notifications.watch('grandlivre_ledgers', folderId)
  slot.over.addEventListener('abort', () => watch.stop(), { once: true })
  for (;;) {
    const selected = await findSelected(services.database, selection, since)
    if (selected.refusal !== null) return selected
    if (selected.cursor !== since) {
      watch.admit()
      await slot.acquireInTurn()
      return selected
    }
    slot.release()
    if (!(await watch.next(deadline - performance.now()))) return selected
    // One commit wakes all that wait for a folder: they look at it and read it a few at a time.
    await slot.acquireInTurn()
    // Nobody reads the answer, so nothing is looked up for it.
    if (slot.over.aborted) return selected
  }
}
