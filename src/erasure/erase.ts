/**
 * Erases a folder, a firm or a third party, and everything of it (docs/operators/erasure.md).
 *
 *   hide      one short transaction: the folder is there for no request, import or list any more; followers are refused
 *   events    lose their content and keep their places, along which numbers are counted; deliveries that wait are made anew
 *   files     in the store, then the rows of their exports
 *   rows      of the ledger, its log and digests, then tokens, then the folder itself
 *
 * Each step is a transaction of at most `rowsAtOnce` rows beside everybody else's, and repeats without harm, so a run that
 * was killed is continued by the next. Rows of the audit stay: they hold ids, and nothing of any books.
 */
import type { Pool, PoolClient } from 'pg'
import type { StaffAct } from '../audit/audit-row.ts'
import { inTransaction } from '../db/pool.ts'
import type { FolderKey } from '../formats/rows.ts'
import { exportFolder } from '../jobs/file-key.ts'
import { tablesOfLedger } from '../ledger/tenants.sql.ts'
import type { ObjectStore } from '../store/store.ts'
import {
  addGone,
  beginErasure,
  deleteDeliveriesOf,
  deleteFolder,
  deleteRows,
  deleteSubscription,
  deleteTokens,
  type ErasedKind,
  type Erasure,
  emptyEvents,
  findErasure,
  forgetDeliveries,
  hideFolder,
  kindsOfEvents,
  lockForErasure,
  lockSubscriptionsOfSchema,
  rowsOfFolder,
  subscriptionsOfFolder,
  unlinkLedger,
} from './erasure.sql.ts'

export interface ErasureParts {
  /** As the owner of the tables. */
  owner: Pool
  store: ObjectStore
  /** Records an act, as the last statement of its transaction. */
  record(
    client: PoolClient,
    act: string,
    recorded: Pick<StaffAct, 'schemaId' | 'folderId' | 'details'>,
  ): Promise<void>
  /** `movements: 120,000 rows`. */
  onStep(text: string): void
}

/** Rows of a transaction: some tenths of a second, during which nobody waits for their locks. */
const rowsAtOnce = 10_000

/** Tables with `folder_id`, in the order in which their rows go. Events and rows of the audit stay. */
export const tablesOfFolder = [
  'movement_blocks',
  'entry_numbers',
  'ledger_blocks',
  'ledger_changes',
  'table_changes',
  ...tablesOfLedger,
  'exports',
  'tokens',
] as const

/** @returns undefined if there is no such folder, and none was erased under this id */
export async function eraseFolder(parts: ErasureParts, folderId: string): Promise<Erasure | undefined> {
  const { owner } = parts
  const folder = await inTransaction(owner, (client) => hide(parts, client, folderId))
  const counted = counting(parts, 'folder', folderId)
  if (folder) {
    await eraseSubscriptions(
      counted,
      await inTransaction(owner, (client) => subscriptionsOfFolder(client, folder)),
    )
    await emptyAllEvents(parts, counted, folder)
    await eraseFiles(parts, counted, folder)
    await inTransaction(owner, (client) => unlinkLedger(client, folder))
    for (const table of tablesOfFolder.filter((each) => each !== 'tokens'))
      await counted.all(table, (client) => deleteRows(client, table, folder, rowsAtOnce))
    await counted.once('tokens', (client) => deleteTokens(client, 'folder_id', folderId))
    // What an attempt was writing when the folder was hidden.
    await eraseFiles(parts, counted, folder)
    await inTransaction(owner, async (client) => {
      await deleteFolder(client, folder)
      await parts.record(client, 'folder erased', { schemaId: folder.schemaId, folderId })
    })
  }
  return inTransaction(owner, (client) => findErasure(client, 'folder', folderId))
}

/** Undefined if the folder has gone already, or never was. */
async function hide(parts: ErasureParts, client: PoolClient, folderId: string) {
  const folder = await lockForErasure(client, folderId)
  if (!folder || folder.isErased) return folder
  const { schemaId, firmId } = folder
  await beginErasure(client, 'folder', folderId, { schemaId, exportIds: await hideFolder(client, folder) })
  await parts.record(client, 'folder delete', { schemaId, folderId, details: { firmId } })
  return folder
}

interface Counting {
  /** Repeats until nothing is left. */
  all(what: string, remove: (client: PoolClient) => Promise<number>): Promise<void>
  once(what: string, remove: (client: PoolClient) => Promise<number>): Promise<number>
}

/** Counts what goes in the row of its erasure, in the same transaction. */
export function counting({ owner, onStep }: ErasureParts, kind: ErasedKind, id: string): Counting {
  const once: Counting['once'] = (what, remove) =>
    inTransaction(owner, async (client) => {
      const count = await remove(client)
      await addGone(client, { kind, id }, what, count)
      return count
    })
  return {
    once,
    async all(what, remove) {
      let gone = 0
      for (let count = 1; count > 0; ) {
        count = await once(what, remove)
        gone += count
        onStep(`${what}: ${gone.toLocaleString('en')}`)
      }
    },
  }
}

/** Deliveries first, in parts: there may be hundreds of thousands. */
export async function eraseSubscriptions(counted: Counting, ids: string[]): Promise<void> {
  for (const id of ids) {
    await counted.all('deliveries', (client) => deleteDeliveriesOf(client, id, rowsAtOnce))
    await counted.once('subscriptions', (client) => deleteSubscription(client, id))
  }
}

async function emptyAllEvents(
  { owner, onStep }: ErasureParts,
  counted: Counting,
  folder: FolderKey,
): Promise<void> {
  let place: Parameters<typeof emptyEvents>[2] | undefined = { name: '', id: '0' }
  let seen = 0
  while (place) {
    const after = place
    await counted.once('events emptied', async (client) => {
      const { last, emptied } = await emptyEvents(client, folder, after, rowsAtOnce)
      place = last
      return emptied
    })
    seen += rowsAtOnce
    onStep(`events: up to ${seen.toLocaleString('en')}`)
  }
  const kinds = await inTransaction(owner, (client) => kindsOfEvents(client, folder))
  let delivery: string | undefined = '0'
  while (delivery !== undefined) {
    const after: string = delivery
    await counted.once('deliveries', async (client) => {
      await lockSubscriptionsOfSchema(client, folder.schemaId)
      const { last, forgotten, answers } = await forgetDeliveries(client, folder, kinds, after, 1_000)
      delivery = last
      onStep(`deliveries: up to number ${last ?? after}, ${answers} answers of receivers`)
      return forgotten
    })
  }
}

async function eraseFiles({ owner, store, onStep }: ErasureParts, counted: Counting, folder: FolderKey) {
  const exportIds = await exportsOf(owner, folder.folderId)
  for (const exportId of exportIds) {
    await counted.once('files', async () => {
      let files = 0
      await store.clear(exportFolder({ schemaId: folder.schemaId, exportId }), () => {
        files += 1
        return true
      })
      return files
    })
    onStep(`files of ${exportIds.length} exports`)
  }
}

async function exportsOf(owner: Pool, folderId: string): Promise<string[]> {
  const erasure = await inTransaction(owner, (client) => findErasure(client, 'folder', folderId))
  return erasure?.exportIds ?? []
}

/** What is left of an erased folder: rows by table, and files. Empty: nothing but ids in the audit and in emptied events. */
export async function leftOfFolder(
  { owner, store }: Pick<ErasureParts, 'owner' | 'store'>,
  folderId: string,
  exports: { schemaId: string; exportId: string }[],
): Promise<Record<string, number>> {
  const left = await inTransaction(owner, (client) => rowsOfFolder(client, folderId, tablesOfFolder))
  let files = 0
  for (const each of exports)
    await store.clear(exportFolder(each), () => {
      files += 1
      return false
    })
  return files > 0 ? { ...left, files } : left
}
