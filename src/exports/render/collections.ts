/** The collections of a folder as JSON texts: parts of the full export, and answers of their own routes. */
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { AppError } from '../../errors.ts'
import type { JsonForm } from '../../formats/file-formats.ts'
import { accountItem } from '../../formats/mad/account.ts'
import { exerciceItems } from '../../formats/mad/exercice.ts'
import {
  accountingFolderItem,
  axisItem,
  bankItem,
  journalItem,
  paymentItem,
} from '../../formats/mad/items.ts'
import { formatRevisions } from '../../formats/mad/revisions.ts'
import {
  readAccounts,
  readAxes,
  readBanks,
  readExercices,
  readFolder,
  readFoldersOfFirm,
  readJournals,
  readPayments,
} from '../../ledger/collections.sql.ts'
import { framings } from './framing.ts'

/** In the order of the full export. */
export const folderCollections = [
  'accountingFolder',
  'payments',
  'banks',
  'journals',
  'accounts',
  'exercices',
  'analytics',
] as const
export type FolderCollection = (typeof folderCollections)[number]

/** `society`: the folders of a firm. */
export type Collection = FolderCollection | 'society'

/** Whose collection: a folder's, or for `society` a firm's. */
export interface CollectionOwner {
  schemaId: string
  folderId: string
  firmId: string
  /** `YYYY-MM-DD` in the time zone of the platform; years are named after it. */
  today: string
  /** That of the platform, in which years are closed. */
  timeZone: string
}

/**
 * Names a collection at one version of the folder's ledger, as selectionTag does. Fiscal years are named after the day,
 * so theirs changes at midnight, and with the time zone, too.
 */
export function collectionTag(
  collection: FolderCollection,
  { schemaId, folderId, today, timeZone }: CollectionOwner,
  ledgerVersion: string,
): string {
  const day = collection === 'exercices' ? [today, timeZone] : []
  const named = JSON.stringify([
    collection,
    formatRevisions[collection],
    schemaId,
    folderId,
    ledgerVersion,
    day,
  ])
  return createHash('sha256').update(named).digest('base64url').slice(0, 22)
}

type Items = AsyncGenerator<object[]>

const itemsOf: Record<Collection, (client: pg.ClientBase, owner: CollectionOwner) => Items> = {
  async *accountingFolder(client, owner) {
    const folder = await readFolder(client, owner)
    if (!folder) throw new AppError('ERR-FOLDER-NOT-FOUND')
    yield [accountingFolderItem(folder)]
  },
  payments: (client, owner) => each(readPayments(client, owner), paymentItem),
  banks: (client, owner) => each(readBanks(client, owner), bankItem),
  journals: (client, owner) => each(readJournals(client, owner), journalItem),
  accounts: (client, owner) => each(readAccounts(client, owner), accountItem),
  async *exercices(client, owner) {
    // A folder has a few dozen at the most, and the name of one follows from the others.
    const rows = await Array.fromAsync(readExercices(client, owner, owner.timeZone))
    yield exerciceItems(rows.flat(), owner.today)
  },
  analytics: (client, owner) => each(readAxes(client, owner), axisItem),
  society: readFoldersOfFirm,
}

async function* each<Row>(batches: AsyncGenerator<Row[]>, item: (row: Row) => object): Items {
  for await (const batch of batches) yield batch.map(item)
}

/**
 * The collection as an array (`accountingFolder`: as one object), or an item a line.
 * @param counted told the number of items of each piece
 * @throws {AppError} ERR-FOLDER-NOT-FOUND for `accountingFolder`
 */
export async function* collectionTexts(
  client: pg.ClientBase,
  collection: Collection,
  owner: CollectionOwner,
  form: JsonForm,
  counted: (items: number) => void,
): AsyncGenerator<string> {
  const { open, separator, terminator, close } = framings[form]
  // There is one: no array of one.
  const isSingle = collection === 'accountingFolder'
  if (!isSingle && open !== '') yield open
  let isFirst = true
  for await (const items of itemsOf[collection](client, owner)) {
    if (items.length === 0) continue
    const text = items.map((item) => JSON.stringify(item) + terminator).join(separator)
    counted(items.length)
    yield isFirst ? text : separator + text
    isFirst = false
  }
  if (!isSingle && close !== '') yield close
}
