/** What the service sends, by the names of docs/spec/resources.md. The types themselves are generated. */
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

/** A movement inside an entry. */
export type EntryMovement = Entry['movements'][number]
/** The entry of a movement. */
export type MovementEntry = Movement['entry']
export type Address = AccountingFolder['address']
/** What an event is about: `accountingLineEntry` and so on. */
export type EventKind = Notification['name']
