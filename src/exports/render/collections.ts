/**
 * The collections of a folder as JSON texts: each answers its own route, and most are also parts of the full export.
 */
import type pg from 'pg'
import { AppError } from '../../errors.ts'
import type { StreamedForm } from '../../formats/file-formats.ts'
import { accountingFirmItem, accountingFolderItem } from '../../formats/items/accounting-folder.ts'
import { accountItem } from '../../formats/items/accounts/account.ts'
import { vatItem } from '../../formats/items/accounts/vat.ts'
import { axisItem } from '../../formats/items/axis.ts'
import { exerciceItems } from '../../formats/items/exercice.ts'
import { bankItem, journalItem } from '../../formats/items/journal.ts'
import { paymentItem } from '../../formats/items/payment.ts'
import type { FolderKey } from '../../formats/rows.ts'
import * as ledger from '../../ledger/collections.sql.ts'
import { tagOf } from '../selection.ts'
import { frameItems, framings, itemFramings } from './framing.ts'

/** The folder of a collection, and the day on which it is read. */
export interface FolderOwner extends FolderKey {
  /** `YYYY-MM-DD` in the time zone of the platform. The names of fiscal years (N, N-1) depend on it. */
  today: string
  /** The platform's time zone, in which the closing day of a fiscal year is computed. */
  timeZone: string
  /** Whether accounts have the personal data of employees. */
  withEmployees: boolean
}

/** A collection of a folder, or `society`: the folders that a token opens. */
export type OwnedCollection =
  | { what: FolderCollection; owner: FolderOwner }
  | { what: 'society'; owner: ledger.OpenedFolders }

/**
 * Identifies a collection at one state of the ledger, as selectionTag does for a selection. The names of fiscal years
 * depend on the day, so their tag changes at midnight and with the time zone. Accounts depend on the token's groups.
 */
export function collectionTag(
  collection: FolderCollection,
  revision: number,
  { schemaId, folderId, today, timeZone, withEmployees }: FolderOwner,
  cursor: string,
): string {
  const day = collection === 'exercices' ? [today, timeZone] : []
  const hidden = collection === 'accounts' && !withEmployees ? ['employees'] : []
  return tagOf(collection, revision, schemaId, folderId, cursor, day, ...hidden)
}

type Items = AsyncGenerator<object[]>

interface Collection {
  /**
   * Revision of the bytes, for the ETag (formatRevisions). If absent, the collection may change without the ledger, and
   * has no ETag.
   */
  revision?: number
  /** Whether the collection is one object instead of an array. */
  isSingle?: true
  items: (client: pg.ClientBase, owner: FolderOwner) => Items
}

/** The collections that have a route. A MAD file has its own list of members (mad-file.ts). */
const declared = {
  accountingFolder: {
    revision: 2,
    isSingle: true,
    items: (client, owner) => single(ledger.readFolderView(client, owner), accountingFolderItem),
  },
  // A firm may change without the ledgers of its folders.
  accountingFirm: {
    isSingle: true,
    items: (client, owner) => single(ledger.readFirm(client, owner), accountingFirmItem),
  },
  payments: { revision: 2, items: (client, owner) => each(ledger.readPayments(client, owner), paymentItem) },
  vats: { revision: 1, items: (client, owner) => each(ledger.readVats(client, owner), vatItem) },
  banks: { revision: 2, items: (client, owner) => each(ledger.readBanks(client, owner), bankItem) },
  journals: { revision: 2, items: (client, owner) => each(ledger.readJournals(client, owner), journalItem) },
  accounts: {
    revision: 2,
    items: (client, owner) => each(ledger.readAccounts(client, owner, owner.withEmployees), accountItem),
  },
  exercices: {
    revision: 2,
    async *items(client, owner) {
      // Reads all at once: a folder has a few dozen at most, and the name of each depends on the others.
      const rows = await Array.fromAsync(ledger.readExercices(client, owner, owner.timeZone))
      yield exerciceItems(rows.flat(), owner.today)
    },
  },
  analytics: { revision: 2, items: (client, owner) => each(ledger.readAxes(client, owner), axisItem) },
} satisfies Record<string, Collection>
export type FolderCollection = keyof typeof declared
export const collections: Record<FolderCollection, Collection> = declared

async function* single<Row>(row: Promise<Row | undefined>, item: (row: Row) => object): Items {
  const read = await row
  if (!read) throw new AppError('ERR-FOLDER-NOT-FOUND')
  yield [item(read)]
}

async function* each<Row>(batches: AsyncGenerator<Row[]>, item: (row: Row) => object): Items {
  for await (const batch of batches) yield batch.map(item)
}

/**
 * The collection as an array or one object, or one item per line.
 * @param counted called with the number of items of each piece
 * @throws {AppError} ERR-FOLDER-NOT-FOUND if the one object of a collection does not exist
 */
export function collectionTexts(
  client: pg.ClientBase,
  { what, owner }: OwnedCollection,
  form: StreamedForm,
  counted: (items: number) => void,
): AsyncGenerator<string> {
  if (what === 'society') return frameItems(ledger.readOpenedFolders(client, owner), framings[form], counted)
  const { items, isSingle } = collections[what]
  return frameItems(items(client, owner), (isSingle ? itemFramings : framings)[form], counted)
}

const zoned = (timeZone: string, now: number) =>
  Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timeZone)

/** The day in a time zone, `YYYY-MM-DD`. @param now epoch milliseconds */
export function dayIn(timeZone: string, now: number): string {
  return zoned(timeZone, now).toPlainDate().toString()
}

/** The minute in a time zone, `YYYY-MM-DDTHH:MM`. @param now epoch milliseconds */
export function minuteIn(timeZone: string, now: number): string {
  return zoned(timeZone, now).toPlainDateTime().toString({ smallestUnit: 'minute' })
}
