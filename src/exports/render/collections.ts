/** The collections of a folder as JSON texts: parts of the full export, and answers of their own routes. */

import type pg from 'pg'
import { AppError } from '../../errors.ts'
import type { JsonForm } from '../../formats/file-formats.ts'
import { accountingFolderItem } from '../../formats/items/accounting-folder.ts'
import { accountItem } from '../../formats/items/accounts/account.ts'
import { axisItem } from '../../formats/items/axis.ts'
import { bankItem } from '../../formats/items/bank.ts'
import { exerciceItems } from '../../formats/items/exercice.ts'
import { journalItem } from '../../formats/items/journal.ts'
import { paymentItem } from '../../formats/items/payment.ts'
import { formatRevisions } from '../../formats/mad/revisions.ts'
import type { FolderKey } from '../../formats/rows.ts'
import {
  type OpenedFolders,
  readAccounts,
  readAxes,
  readBanks,
  readExercices,
  readFolder,
  readJournals,
  readOpenedFolders,
  readPayments,
} from '../../ledger/collections.sql.ts'
import { tagOf } from '../tag.ts'
import { frameItems, framings, itemFramings } from './framing.ts'

/** The folder of a collection, and the day on which it is read. */
export interface FolderOwner extends FolderKey {
  /** `YYYY-MM-DD` in the time zone of the platform. The names of fiscal years (N, N-1) depend on it. */
  today: string
  /** The platform's time zone, in which the closing day of a fiscal year is computed. */
  timeZone: string
}

/** A collection of a folder, or `society`: the folders that a token opens. */
export type OwnedCollection =
  | { what: FolderCollection; owner: FolderOwner }
  | { what: 'society'; owner: OpenedFolders }

/**
 * Identifies a collection at one state of the ledger, as selectionTag does for a selection. The names of fiscal years depend
 * on the day, so their tag changes at midnight and with the time zone.
 */
export function collectionTag(
  collection: FolderCollection,
  { schemaId, folderId, today, timeZone }: FolderOwner,
  cursor: string,
): string {
  const day = collection === 'exercices' ? [today, timeZone] : []
  return tagOf(collection, formatRevisions[collection], schemaId, folderId, cursor, day)
}

type Items = AsyncGenerator<object[]>

/** The collections that have a route. Members of a MAD file are a list of their own (mad-file.ts). */
const folderItems = {
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
    // All at once: a folder has a few dozen at most, and the name of each depends on the others.
    const rows = await Array.fromAsync(readExercices(client, owner, owner.timeZone))
    yield exerciceItems(rows.flat(), owner.today)
  },
  analytics: (client, owner) => each(readAxes(client, owner), axisItem),
} satisfies Record<string, (client: pg.ClientBase, owner: FolderOwner) => Items>
export type FolderCollection = keyof typeof folderItems

function itemsOf(client: pg.ClientBase, { what, owner }: OwnedCollection): Items {
  return what === 'society' ? readOpenedFolders(client, owner) : folderItems[what](client, owner)
}

async function* each<Row>(batches: AsyncGenerator<Row[]>, item: (row: Row) => object): Items {
  for await (const batch of batches) yield batch.map(item)
}

/**
 * The collection as an array (`accountingFolder`: as one object), or one item per line.
 * @param counted called with the number of items of each piece
 * @throws {AppError} ERR-FOLDER-NOT-FOUND for `accountingFolder`
 */
export function collectionTexts(
  client: pg.ClientBase,
  collection: OwnedCollection,
  form: JsonForm,
  counted: (items: number) => void,
): AsyncGenerator<string> {
  const framing = collection.what === 'accountingFolder' ? itemFramings : framings
  return frameItems(itemsOf(client, collection), framing[form], counted)
}
