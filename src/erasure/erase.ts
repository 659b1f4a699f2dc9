/**
 * Erases a folder, a firm or a third party, and everything of it (docs/operators/erasure.md).
 *
 *   hide      one short transaction: the folder is there for no request, import or list any more; followers are refused
 *   events    lose their content and keep their places, along which numbers are counted; waiting deliveries are rebuilt
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
  deliveriesOfFolder,
  forgetAnswers,
  forgetDelivery,
  type StoredDelivery,
} from '../webhooks/erased-deliveries.sql.ts'
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
  filesOfFolder,
  findErasure,
  forgetFiles,
  kindsOfEvents,
  lockForErasure,
  lockSubscriptionsOfSchema,
  markErased,
  noteExports,
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
export const rowsAtOnce = 10_000
/** Each is looked at exactly, with the subscriptions of the tenant locked where one waits. */
const deliveriesAtOnce = 200

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

/**
 * @param of what is asked of it: the firm that it has to be of, and whether its files may be missing from the store
 * @returns undefined if there is no such folder, and none was erased under this id
 * @throws {FilesMissing} then nothing was changed
 */
export async function eraseFolder(
  parts: ErasureParts,
  folderId: string,
  of: { firmId?: string; withoutFiles?: boolean | undefined } = {},
): Promise<Erasure | undefined> {
  const { owner } = parts
  if (!of.withoutFiles) await checkFiles(parts, folderId)
  const folder = await hideFolder(parts, folderId, of.firmId)
  if (folder === 'of another firm') return undefined
  const erasure = await inTransaction(owner, (client) => findErasure(client, 'folder', folderId))
  if (!erasure) return undefined
  // Also where its row has gone: a restored store, or a writer that was late, may have brought something back.
  const key = { schemaId: erasure.schemaId!, folderId }
  const counted = counting(parts, 'folder', folderId)
  await eraseSubscriptions(
    counted,
    await inTransaction(owner, (client) => subscriptionsOfFolder(client, key)),
  )
  await emptyAllEvents(parts, counted, key)
  await eraseDeliveries(parts, counted, key)
  await eraseFiles(parts, key)
  // Once they have gone: a run that is killed in between must not leave them uncounted.
  await counted.once('files', (client) => forgetFiles(client, key))
  await inTransaction(owner, (client) => unlinkLedger(client, key))
  for (const table of tablesOfFolder.filter((each) => each !== 'tokens'))
    await counted.all(table, (client) => deleteRows(client, table, key, rowsAtOnce))
  await counted.once('tokens', (client) => deleteTokens(client, 'folder_id', folderId))
  // What an attempt was writing when the folder was hidden.
  await eraseFiles(parts, key)
  if (folder)
    await inTransaction(owner, async (client) => {
      await deleteFolder(client, key)
      await parts.record(client, 'folder erased', key)
    })
  return inTransaction(owner, (client) => findErasure(client, 'folder', folderId))
}

/** The store of these settings is not that of the service, or has lost files. */
export class FilesMissing extends Error {}

/** Another store would be found empty, and the files would stay where they are. */
export async function checkFiles({ owner, store }: ErasureParts, folderId: string): Promise<void> {
  const known = await inTransaction(owner, async (client) => {
    const folder = await lockForErasure(client, folderId)
    return folder && !folder.isErased ? filesOfFolder(client, folderId) : []
  })
  for (const { fileKey, ...key } of known) {
    let isThere = false
    await store.clear(exportFolder(key), (each) => {
      isThere ||= each === fileKey
      return false
    })
    if (!isThere)
      throw new FilesMissing(
        `The store of these settings has not the file ${fileKey} of export ${key.exportId}. Nothing was changed. ` +
          'Run the command with the settings of the service (DATA_DIR, or S3_ENDPOINT and its like), or with --without-files if the file is lost',
      )
  }
}

/** The first step. @returns undefined if the folder has gone already, or never was */
export async function hideFolder({ owner, record }: ErasureParts, folderId: string, ofFirm?: string) {
  return inTransaction(owner, async (client) => {
    const folder = await lockForErasure(client, folderId)
    if (!folder) return undefined
    const { schemaId, firmId } = folder
    if (ofFirm !== undefined && firmId !== ofFirm) return 'of another firm'
    if (folder.isErased) return folder
    const exportIds = await markErased(client, folder)
    await beginErasure(client, 'folder', folderId, { schemaId, firmId, exportIds })
    await record(client, 'folder delete', { schemaId, folderId, details: { firmId } })
    return folder
  })
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

async function emptyAllEvents({ onStep }: ErasureParts, counted: Counting, folder: FolderKey): Promise<void> {
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
}

/** Waiting deliveries are rebuilt, failed ones deleted, and the answers of receivers to delivered ones forgotten. */
async function eraseDeliveries(
  { owner, onStep }: ErasureParts,
  counted: Counting,
  folder: FolderKey,
): Promise<void> {
  const kinds = await inTransaction(owner, (client) => kindsOfEvents(client, folder))
  for (let after: string | undefined = '0'; after !== undefined; ) {
    const from: string = after
    await counted.once('deliveries', async (client) => {
      const read = () => deliveriesOfFolder(client, folder, kinds, from, deliveriesAtOnce)
      let { last, touched } = await read()
      after = last
      if (touched.some(({ state }) => state !== 'delivered')) {
        await lockSubscriptionsOfSchema(client, folder.schemaId)
        // One may have been delivered before the lock.
        touched = (await read()).touched
      }
      const [delivered, others] = [touched.filter(isDelivered), touched.filter((each) => !isDelivered(each))]
      for (const delivery of delivered) await forgetAnswers(client, delivery)
      for (const delivery of others) await forgetDelivery(client, delivery, Date.now())
      return others.length
    })
    onStep(`deliveries: up to number ${after ?? from}`)
  }
}

const isDelivered = ({ state }: StoredDelivery) => state === 'delivered'

async function eraseFiles({ owner, store, onStep }: ErasureParts, key: FolderKey): Promise<void> {
  const exportIds = await inTransaction(owner, (client) => noteExports(client, key))
  for (const exportId of exportIds) {
    await store.clear(exportFolder({ schemaId: key.schemaId, exportId }), () => true)
    onStep(`files of ${exportIds.length} exports`)
  }
}

/** What is left of an erased folder: rows by table, and files. Empty: nothing but ids in the audit and in emptied events. */
export async function leftOfFolder(
  { owner, store }: Pick<ErasureParts, 'owner' | 'store'>,
  key: FolderKey,
  exportIds: readonly string[],
): Promise<Record<string, number>> {
  const left = await inTransaction(owner, (client) => rowsOfFolder(client, key, tablesOfFolder))
  let files = 0
  for (const exportId of exportIds)
    await store.clear(exportFolder({ schemaId: key.schemaId, exportId }), () => {
      files += 1
      return false
    })
  return files > 0 ? { ...left, files } : left
}
