/** The items that the service sends, under the names of docs/spec/resources.md. The types themselves are generated. */
import type { AccountingFolder, Entry, Movement, Notification } from './routes.ts'

export type {
  Account,
  AccountBalance,
  AccountingFolder,
  AnalyticalAxe,
  Bank,
  Entry,
  Exercice,
  ExportJob,
  Journal,
  Movement,
  Notification,
  Payment,
  Society,
  WebhookDelivery,
  WebhookSubscription,
} from './routes.ts'

/** A movement as a member of its entry. */
export type EntryMovement = Entry['movements'][number]
/** The entry as a member of a movement. */
export type MovementEntry = Movement['entry']
export type Address = AccountingFolder['address']
/** What kind of item an event is about, such as `accountingLineEntry`. */
export type EventKind = Notification['name']
