/**
 * Erases a folder, a firm or a third party, and everything that belongs to it (docs/operators/erasure.md).
 *
 * 1. One short transaction hides the folder from every request, import and list. Its followers are refused.
 * 2. Events lose their content. They keep their places, because numbers count them. Waiting deliveries are rebuilt.
 * 3. Files are deleted from the store, before the rows of their exports.
 * 4. The rows of the ledger, its log and its digests are deleted, then the tokens, then the folder itself.
 *
 * Each step is a transaction that changes at most `rowsAtOnce` rows, while others work. Steps can be repeated without
 * harm, so the next run continues a run that was killed. Rows of the audit stay: they hold ids, and no content of any
 * ledger.
 */
import type { PoolClient } from 'pg'
import type { StaffAct } from '../audit/audit.sql.ts'
import { findThirdParty, listSecrets, setConnection } from '../auth/third-parties.sql.ts'
import { revokeTokens } from '../auth/tokens.sql.ts'
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
import type { ErasedKind, Erasure } from './erasure.sql.ts'
import * as sql from './erasure.sql.ts'

export interface Erasing {
  /** Runs one step in a transaction of the owner of the tables. */
  step<T>(run: (client: PoolClient) => Promise<T>): Promise<T>
  store: ObjectStore
  /** Records an act. Must be the last statement of its transaction. */
  record(
    client: PoolClient,
    act: string,
    recorded: Pick<StaffAct, 'schemaId' | 'folderId' | 'details'>,
  ): Promise<void>
  /** Shows the progress: `movements: 120,000`. */
  onStep(text: string): void
}

/** The most rows of a step. Such a step takes some tenths of a second, and holds no locks that others wait for. */
const rowsAtOnce = 10_000
/**
 * The most deliveries that a step examines. If one of them shows the folder and is pending or failed, the step locks
 * the subscriptions with pending deliveries.
 */
const deliveriesAtOnce = 200

/** Tables with `folder_id`, in the order in which their rows are deleted. Events and rows of the audit stay. */
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
 * Erases a folder.
 * @param firmId the firm that the folder must belong to; if absent, any firm
 * @param withoutFiles erases the folder even if files of its exports are not in the store
 * @returns undefined if there is no such folder, and none was erased under this id
 * @throws {Error} if a file is missing: then nothing was changed
 */
export async function eraseFolder(
  erasing: Erasing,
  folderId: string,
  { firmId, withoutFiles }: { firmId?: string; withoutFiles?: boolean | undefined } = {},
): Promise<Erasure | undefined> {
  const { step } = erasing
  if (!withoutFiles) await checkFiles(erasing, folderId)
  const folder = await hideFolder(erasing, folderId, firmId)
  if (folder === 'of another firm') return undefined
  const find = () => step((client) => sql.findErasure(client, 'folder', folderId))
  const erasure = await find()
  if (!erasure) return undefined
  // Runs even if the folder's row has gone: a restored store or a late writer may have brought something back.
  const key = { schemaId: erasure.schemaId!, folderId }
  const steps = countedSteps(erasing, 'folder', folderId)
  await steps.deleteSubscriptions('folder_ids', folderId)
  await emptyAllEvents(erasing, steps, key)
  await eraseDeliveries(erasing, steps, key)
  await eraseFiles(erasing, key)
  // After the files: a run that is killed between the two must not leave files uncounted.
  await steps.run('files', (client) => sql.forgetFiles(client, key))
  await step((client) => sql.unlinkLedger(client, key))
  for (const table of tablesOfFolder.filter((each) => each !== 'tokens'))
    await steps.deleteRows(table, { schema_id: key.schemaId, folder_id: folderId })
  await steps.run('tokens', (client) => sql.deleteTokens(client, 'folder_id', folderId))
  // Erases the files that an attempt was writing when the folder was hidden.
  await eraseFiles(erasing, key)
  if (folder)
    await step(async (client) => {
      await sql.deleteFolder(client, key)
      await erasing.record(client, 'folder erased', key)
    })
  return find()
}

/**
 * Checks that the store has the files of the folder. In another store none would be found, and the files would stay
 * where they are.
 * @throws {Error} if the store of these settings is not that of the service, or has lost files
 */
async function checkFiles({ step, store }: Erasing, folderId: string): Promise<void> {
  const known = await step(async (client) => {
    const folder = await sql.lockForErasure(client, folderId)
    return folder && !folder.isErased ? sql.filesOfFolder(client, folderId) : []
  })
  for (const { fileKey, ...key } of known) {
    let isThere = false
    await store.clear(exportFolder(key), (each) => {
      isThere ||= each === fileKey
      return false
    })
    if (!isThere)
      throw new Error(
        `The store of these settings does not have the file ${fileKey} of export ${key.exportId}. Nothing was changed. ` +
          'Run the command with the settings of the service (DATA_DIR, or S3_ENDPOINT and its like), or with --without-files if the file is lost',
      )
  }
}

/** The first step: hides the folder. @returns undefined if the folder has gone already, or never existed */
function hideFolder({ step, record }: Erasing, folderId: string, ofFirm?: string) {
  return step(async (client) => {
    const folder = await sql.lockForErasure(client, folderId)
    if (!folder) return undefined
    const { schemaId, firmId } = folder
    if (ofFirm !== undefined && firmId !== ofFirm) return 'of another firm'
    if (folder.isErased) return folder
    const exportIds = await sql.markErased(client, folder)
    await sql.beginErasure(client, 'folder', folderId, { schemaId, firmId, exportIds })
    await record(client, 'folder delete', { schemaId, folderId, details: { firmId } })
    return folder
  })
}

type CountedSteps = ReturnType<typeof countedSteps>

/** Makes steps that erase rows, and in the same transaction add their number to the counts of the erasure. */
function countedSteps({ step, onStep }: Erasing, kind: ErasedKind, id: string) {
  const run = (what: string, remove: (client: PoolClient) => Promise<number>) =>
    step(async (client) => {
      const count = await remove(client)
      await sql.addGone(client, { kind, id }, what, count)
      return count
    })
  /** Deletes rows in parts of `rowsAtOnce`, until none is left. */
  const deleteRows = async (table: string, values: Record<string, string>) => {
    let gone = 0
    for (let count = 1; count > 0; ) {
      count = await run(table, (client) => sql.deleteRows(client, table, values, rowsAtOnce))
      gone += count
      onStep(`${table}: ${gone.toLocaleString('en')}`)
    }
  }
  /** Deletes each subscription after its deliveries, because there may be hundreds of thousands of these. */
  const deleteSubscriptions = async (column: Parameters<typeof sql.subscriptionsWhere>[1], value: string) => {
    for (const subscription_id of await step((client) => sql.subscriptionsWhere(client, column, value))) {
      await deleteRows('deliveries', { subscription_id })
      await run('subscriptions', (client) => sql.deleteSubscription(client, subscription_id))
    }
  }
  return { run, deleteRows, deleteSubscriptions }
}

async function emptyAllEvents({ onStep }: Erasing, steps: CountedSteps, folder: FolderKey): Promise<void> {
  let place: Parameters<typeof sql.emptyEvents>[2] | undefined = { name: '', id: '0' }
  let seen = 0
  while (place) {
    const after = place
    await steps.run('events emptied', async (client) => {
      const { last, emptied } = await sql.emptyEvents(client, folder, after, rowsAtOnce)
      place = last
      return emptied
    })
    seen += rowsAtOnce
    onStep(`events: up to ${seen.toLocaleString('en')}`)
  }
}

/** Rebuilds waiting deliveries, deletes failed ones, and forgets the answers of receivers to delivered ones. */
async function eraseDeliveries(
  { step, onStep }: Erasing,
  steps: CountedSteps,
  folder: FolderKey,
): Promise<void> {
  const kinds = await step((client) => sql.kindsOfEvents(client, folder))
  for (let after: string | undefined = '0'; after !== undefined; ) {
    const from: string = after
    await steps.run('deliveries', async (client) => {
      const read = () => deliveriesOfFolder(client, folder, kinds, from, deliveriesAtOnce)
      let { last, touched } = await read()
      after = last
      if (touched.some(({ state }) => state !== 'delivered')) {
        await sql.lockSubscriptionsOfSchema(client, folder.schemaId)
        // A delivery may have succeeded before the lock.
        touched = (await read()).touched
      }
      const [delivered, others] = [touched.filter(isDelivered), touched.filter((each) => !isDelivered(each))]
      for (const delivery of delivered) await forgetAnswers(client, delivery)
      for (const delivery of others) await forgetDelivery(client, delivery)
      return others.length
    })
    onStep(`deliveries: up to number ${after ?? from}`)
  }
}

const isDelivered = ({ state }: StoredDelivery) => state === 'delivered'

async function eraseFiles({ step, store, onStep }: Erasing, key: FolderKey): Promise<void> {
  const exportIds = await step((client) => sql.noteExports(client, key))
  for (const exportId of exportIds) {
    await store.clear(exportFolder({ schemaId: key.schemaId, exportId }), () => true)
    onStep(`files of ${exportIds.length} exports`)
  }
}

/**
 * Counts what is left of an erased folder: rows by table, and files. If the result is empty, only ids are left, in
 * the audit and in emptied events.
 */
export async function leftOfFolder(
  { step, store }: Pick<Erasing, 'step' | 'store'>,
  key: FolderKey,
  exportIds: readonly string[],
): Promise<Record<string, number>> {
  const left = await step((client) => sql.rowsOfFolder(client, key, tablesOfFolder))
  let files = 0
  for (const exportId of exportIds)
    await store.clear(exportFolder({ schemaId: key.schemaId, exportId }), () => {
      files += 1
      return false
    })
  return files > 0 ? { ...left, files } : left
}

/**
 * Erases a firm. From the first step on, staff no longer find the firm (`findFirm`), so it gets no new folder or token.
 * @returns undefined if there is no such firm, and none was erased under this id
 */
export async function eraseFirm(
  erasing: Erasing,
  firmId: string,
  { withoutFiles }: { withoutFiles?: boolean | undefined } = {},
): Promise<Erasure | undefined> {
  const { step } = erasing
  if (!withoutFiles)
    for (const folderId of await step((client) => sql.foldersOfFirm(client, firmId)))
      await checkFiles(erasing, folderId)
  const firm = await step(async (client) => {
    const found = await sql.lockFirm(client, firmId)
    if (!found || (await isUnderWay(client, 'firm', firmId))) return found
    await sql.beginErasure(client, 'firm', firmId, found)
    await sql.revokeTokensOfFirm(client, firmId)
    await erasing.record(client, 'firm delete', { schemaId: found.schemaId, details: { firmId } })
    return found
  })
  if (firm) await eraseOfFirm(erasing, firm.schemaId, firmId)
  return step((client) => sql.findErasure(client, 'firm', firmId))
}

/**
 * Whether an erasure has begun and not ended. An ended erasure does not count: if the firm or third party exists, a
 * restore has brought it back.
 */
async function isUnderWay(client: PoolClient, kind: ErasedKind, id: string): Promise<boolean> {
  const erasure = await sql.findErasure(client, kind, id)
  return erasure !== undefined && !erasure.hasEnded
}

async function eraseOfFirm(erasing: Erasing, schemaId: string, firmId: string): Promise<void> {
  const { step } = erasing
  const steps = countedSteps(erasing, 'firm', firmId)
  const folderIds = await step((client) => sql.foldersOfFirm(client, firmId))
  // Hides all folders first, because erasing the rows of one folder may take minutes.
  for (const folderId of folderIds) await hideFolder(erasing, folderId, firmId)
  for (const folderId of folderIds) {
    erasing.onStep(`folder ${folderId}`)
    // Skips a folder that has moved to another firm.
    const erasure = await eraseFolder(erasing, folderId, { firmId, withoutFiles: true })
    if (erasure)
      await steps.run('folders', async (client) => {
        await sql.endErasure(client, erasure)
        return 1
      })
  }
  await steps.deleteSubscriptions('firm_id', firmId)
  await steps.run('tokens', (client) => sql.deleteTokens(client, 'firm_id', firmId))
  const isLast = await step((client) => sql.isLastFirm(client, schemaId, firmId))
  if (isLast) {
    await steps.deleteSubscriptions('schema_id', schemaId)
    await steps.deleteRows('events', { schema_id: schemaId })
  }
  await step(async (client) => {
    await sql.deleteFirm(client, schemaId, firmId, isLast)
    await erasing.record(client, 'firm erased', { schemaId, details: { firmId, tenant: isLast } })
  })
}

/** @returns undefined if there is no such third party, and none was erased under this code */
export async function erasePartner(erasing: Erasing, code: string): Promise<Erasure | undefined> {
  const { step } = erasing
  const partner = await step(async (client) => {
    const found = await findThirdParty(client, code)
    if (!found || (await isUnderWay(client, 'partner', found.id))) return found
    // The row of an erased third party stays if ledgers name it, but without secrets.
    const wasErased = (await listSecrets(client, found.id)).length === 0
    if (wasErased && (await sql.findErasure(client, 'partner', found.id))) return undefined
    await sql.beginErasure(client, 'partner', found.id, { code })
    await revokeTokens(client, 'p.code', code)
    await setConnection(client, code, 'It was erased')
    await erasing.record(client, 'partner delete', { details: { thirdPartyId: found.id } })
    return found
  })
  if (!partner) return (await step((client) => sql.readErasures(client, 'ofCode', [code])))[0]
  const { id } = partner
  const steps = countedSteps(erasing, 'partner', id)
  await steps.deleteSubscriptions('third_party_id', id)
  await steps.run('tokens', (client) => sql.deleteTokens(client, 'third_party_id', id))
  await step(async (client) => {
    const entries = await sql.deleteThirdParty(client, id)
    await erasing.record(client, 'partner erased', {
      details: { thirdPartyId: id, entriesThatNameIt: entries },
    })
  })
  return step((client) => sql.findErasure(client, 'partner', id))
}
