/** Written by `npm run docs -- api` from the OpenAPI document: edit the routes of the service, not this file. */

export type TokenInformation =
  | OpenedRoute[]
  | {
      target: TokenTarget
      version: TokenVersion
      canBeActivated: boolean
      isActivated: boolean
      /**
       * The groups of routes that the token opens
       */
      groups: TokenGroup[]
      /**
       * When the token ends; null: it has no end
       */
      expiresAt: string | null
      routes: OpenedRoute[]
    }
export type RouteMethod = 'get' | 'post' | 'put' | 'delete'
export type TokenLevel = 'api' | 'firm'
export type TokenGroup = 'movements' | 'exports' | 'webhooks' | 'resources' | 'employees'
export type LetteringState = 'none' | 'partial' | 'complete'
export type ExportStatus = 'INIT' | 'DONE' | 'FAILED'
export type ExerciceState = 'open' | 'closed'
export type LetteringSpan = 'MONO' | 'MULTI'
export type EventKind =
  | 'connector'
  | 'accountingFolder'
  | 'exercice'
  | 'accountingLineEntry'
  | 'accountingEntryLettering'
  | 'cloudDocument'
  | 'document'
  | 'portfolio'
  | 'thirdParty'
  | 'adminMessage'
  | 'ledger'
  | 'visitedPage'
  | 'yousignSignature'
  | 'taxReturnSent'
export type Notification =
  | ConnectorEvent
  | AccountingFolderCreateEvent
  | AccountingFolderUpdateEvent
  | ExerciceCreateEvent
  | ExerciceUpdateEvent
  | ExerciceDeleteEvent
  | AccountingLineEntryEvent
  | AccountingEntryLetteringEvent
  | CloudDocumentEvent
  | DocumentEvent
  | PortfolioEvent
  | ThirdPartyEvent
  | AdminMessageEvent
  | LedgerEvent
  | VisitedPageEvent
  | YousignSignatureEvent
  | TaxReturnSentEvent
export type ConnectorOperation = 'CREATE' | 'UPDATE' | 'DELETE'
export type AccountingEntryLetteringOperation = 'CREATE' | 'DELETE'
export type CloudDocumentOperation = 'CREATE' | 'UPDATE'
export type CloudDocumentStatus = 'completed' | 'rejected'
export type DocumentKind = 'AF' | 'PF' | 'DB' | 'ED' | 'MF'
export type PortfolioOperation = 'CREATE' | 'DELETE'
export type ThirdPartyOperation = 'CREATE' | 'UPDATE' | 'DELETE'
export type DeliveryState = 'pending' | 'delivered' | 'failed'
export type WebhookDeliveryAttempt = WebhookAttempt & {
  number: number
}
/**
 * @minItems 2
 * @maxItems 2
 */
export type EntryRange = string[]
export type FolderId = string | number
export type Replay = ReplayedNumbers | ReplayedFailures
export type WebhookPing = WebhookAttempt & {
  fault: PingFault | null
  /**
   * The receiver's clock, epoch milliseconds: its header date. Null: it sent none
   */
  receiverDate: number | null
  disabled: WebhookDisabled | null
}
export type PingFault = 'address-refused' | 'dns' | 'connection-refused' | 'tls' | 'time-out' | 'no-answer'
/**
 * @maxItems 100
 */
export type SubscriptionChange =
  | PatchStep[]
  | {
      /**
       * Where events are posted. Null: nowhere; they are read at /api/v1/webhook/{id}/events
       */
      postUrl?: string | null
      /**
       * Kinds of events. All operations of a kind are sent
       *
       * @minItems 1
       */
      onEvents?: EventKind[]
      /**
       * Folders. If empty: the firm for a firm token, with folders that come later; its own folder for a company token
       */
      accountingFolderId?: FolderId[]
    }
export type PatchStep = AddStep | ReplaceStep | RemoveStep | MoveStep | CopyStep | TestStep
export type MovementLine = Movement | ChangesLine
export type EntryLine = Entry | ChangesLine
export type ErrorCode =
  | 'ERR-VALIDATION'
  | 'ERR-UNSUPPORTED-VERSION'
  | 'ERR-SOCIETY-ID-REQUIRED'
  | 'ERR-INVALID-AUTH-HEADER'
  | 'ERR-SECRET-HEADER-NOT-SET'
  | 'ERR-INVALID-SECRET'
  | 'ERR-API-TOKEN-NOT-FOUND'
  | 'ERR-FIRM-TOKEN-NOT-FOUND'
  | 'ERR-THIRD-PARTY-DISCONNECTED'
  | 'ERR-FORBIDDEN-ROUTE'
  | 'ERR-FORBIDDEN-ACCESS'
  | 'ERR-FILE-LINK-INVALID'
  | 'ERR-NOT-FOUND'
  | 'ERR-FOLDER-NOT-FOUND'
  | 'ERR-EXERCICE-NOT-FOUND'
  | 'ERR-JOURNAL-NOT-FOUND'
  | 'ERR-ENTRY-NOT-FOUND'
  | 'ERR-EXPORT-NOT-FOUND'
  | 'ERR-WEBHOOK-NOT-FOUND'
  | 'ERR-METHOD-NOT-ALLOWED'
  | 'ERR-NOT-ACCEPTABLE'
  | 'ERR-PATCH-TEST-FAILED'
  | 'ERR-AMBIGUOUS-ENTRY'
  | 'ERR-WEBHOOK-PULL-ONLY'
  | 'ERR-WEBHOOK-DISABLED'
  | 'ERR-TOO-MANY-SUBSCRIPTIONS'
  | 'ERR-FILE-LINK-EXPIRED'
  | 'ERR-EVENTS-EXPIRED'
  | 'ERR-EXPORT-EXPIRED'
  | 'ERR-CURSOR-EXPIRED'
  | 'ERR-PRECONDITION-FAILED'
  | 'ERR-PAYLOAD-TOO-LARGE'
  | 'ERR-UNSUPPORTED-MEDIA-TYPE'
  | 'ERR-RANGE-NOT-SATISFIABLE'
  | 'ERR-TOO-MANY-REQUEST'
  | 'ERR-TOO-MANY-CONCURRENT-REQUEST'
  | 'ERR-INTERNAL'
  | 'ERR-UNAVAILABLE'
  | 'ERR-API-UNDER-MAINTENANCE'
/**
 * JSON Patch (RFC 6902) on /postUrl, /onEvents and /accountingFolderId. The value of an item is a string or a number, and a moved or copied value stays an item or a field. The result must be valid for POST. To add or replace /position with "latest" skips what was not delivered yet
 *
 * @maxItems 100
 */
export type SubscriptionPatch = PatchStep[]

/**
 * The routes of the service by method and by path after /api/v1.
 */
export interface Routes {
  get: {
    /**
     * The routes open to the token, and with mode=extended the token itself
     */
    '/key/info': {
      query?: {
        mode?: 'extended'
      }
      answer: TokenInformation
    }
    /**
     * Digests of movements by ranges of entry ids, to compare a copy with
     */
    '/mad/movements/blocks': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
        /**
         * The fiscal year, instead of a period
         */
        idExercice?: string
        startDate?: string
        /**
         * Inclusive; less than 12 months after startDate
         */
        endDate?: string
        /**
         * The date to which the period applies; document by default
         */
        dateFilter?: 'document' | 'platform' | 'accounting'
        source?:
          | 'E'
          | 'M'
          | 'O'
          | 'EXT'
          | 'L'
          | 'IB'
          | 'P'
          | 'AN'
          | 'OD_TVA'
          | 'OD_CALC_IS'
          | 'OD_ECART'
          | 'REM_BQ'
          | 'RB_MANUEL'
          | 'WORKSHEET'
          | 'QUADRA'
          | 'CEGID'
          | 'ACD'
          | 'FEC'
          | 'EXCEL'
          | 'RB_JDC'
          | 'RB_QT'
          | 'RB_SB'
          | 'RB_FTP'
          | 'RTVR'
          | 'QUICK'
          | 'ABO'
          | 'PRLV_SEPA'
          | 'VIRT_SEPA'
          | 'API'
        /**
         * Present: only entries awaiting validation (false or 0 count as absent)
         */
        draft?: string
        /**
         * Roots of account numbers
         *
         * @minItems 1
         */
        classAccount?: string[]
        lettering?: 'none' | 'partial' | 'complete'
      }
      answer: Block[]
    }
    /**
     * Debit, credit and balance of each account in a fiscal year or a period
     */
    '/mad/balance': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
        /**
         * The fiscal year, instead of a period
         */
        idExercice?: string
        startDate?: string
        /**
         * Inclusive; less than 12 months after startDate
         */
        endDate?: string
        /**
         * Roots of account numbers
         *
         * @minItems 1
         */
        classAccount?: string[]
      }
      answer: AccountBalance[]
    }
    /**
     * One entry with its movements
     */
    '/mad/entry': {
      query: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
        /**
         * The producerId of an entry, draft or not, as notifications carry it; else the invoice number of one of its movements; else the partnerId of its partnerMetadata
         */
        id: string
        /**
         * Present: only entries awaiting validation (false or 0 count as absent)
         */
        draft?: string
      }
      answer: Entry
    }
    /**
     * Starts an export of the folder to a file
     */
    '/mad/all': {
      query: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
        format: 'JSON' | 'TRA' | 'FEC' | 'CSV' | 'PARQUET'
        /**
         * The file is compressed
         */
        compression?: 'gzip' | 'zstd'
        /**
         * The fiscal year, instead of a period; only with TRA, FEC, CSV or PARQUET; required with FEC
         */
        idExercice?: string
        /**
         * With endDate; only with TRA, CSV or PARQUET
         */
        startDate?: string
        /**
         * Inclusive; less than 24 months after startDate; only with TRA, CSV or PARQUET
         */
        endDate?: string
        /**
         * Journals to restrict to; only with TRA, CSV or PARQUET
         *
         * @minItems 1
         */
        journalIds?: string[]
        /**
         * UTF-8 instead of ISO 8859-15; only with FEC
         */
        encoding?: 'utf-8'
        /**
         * The further columns of the imported file too; only with FEC
         */
        columns?: 'extended'
      }
      answer: ExportJob
    }
    /**
     * The progress of an export, and the address of its file
     */
    '/mad/all/status': {
      query: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
        exportId: string
      }
      answer: ExportJob
    }
    /**
     * The ledgers that the token may read, each with its cursor; waits for a change
     */
    '/mad/ledgers': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
        /**
         * Seconds to wait for something new. Default: 0
         */
        wait?: number
      }
      answer: Ledger[]
    }
    /**
     * The folder itself
     */
    '/mad/accountingFolder': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
      }
      answer: AccountingFolder
    }
    /**
     * The accounting firm of the folder
     */
    '/mad/accountingFirm': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
      }
      answer: AccountingFirm
    }
    /**
     * Modes of payment
     */
    '/mad/payments': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
      }
      answer: Payment[]
    }
    /**
     * VAT codes
     */
    '/mad/vats': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
      }
      answer: Vat[]
    }
    /**
     * Bank accounts
     */
    '/mad/banks': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
      }
      answer: Bank[]
    }
    /**
     * Journals
     */
    '/mad/journals': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
      }
      answer: Journal[]
    }
    /**
     * The chart of accounts, with companies and employees
     */
    '/mad/accounts': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
      }
      answer: Account[]
    }
    /**
     * Fiscal years
     */
    '/mad/exercices': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
      }
      answer: Exercice[]
    }
    /**
     * Analytical axes with their sections
     */
    '/mad/analytics': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
      }
      answer: AnalyticalAxe[]
    }
    /**
     * The folders that the token opens: those of a firm, or the one of a company token
     */
    '/society': {
      answer: Society[]
    }
    /**
     * The subscriptions of the caller
     */
    '/webhook': {
      answer: WebhookSubscription[]
    }
    /**
     * One subscription of the caller
     */
    '/webhook/{id}': {
      path: {
        id: string
      }
      answer: WebhookSubscription
    }
    /**
     * The subscriptions of the caller that receive events of this kind
     */
    '/webhook/event/{name}': {
      path: {
        name:
          | 'connector'
          | 'accountingFolder'
          | 'exercice'
          | 'accountingLineEntry'
          | 'accountingEntryLettering'
          | 'cloudDocument'
          | 'document'
          | 'portfolio'
          | 'thirdParty'
          | 'adminMessage'
          | 'ledger'
          | 'visitedPage'
          | 'yousignSignature'
          | 'taxReturnSent'
      }
      answer: WebhookSubscription[]
    }
    /**
     * The subscriptions of the caller that receive events of this kind in this folder
     */
    '/webhook/event/{name}/{accountingFolderId}': {
      path: {
        name:
          | 'connector'
          | 'accountingFolder'
          | 'exercice'
          | 'accountingLineEntry'
          | 'accountingEntryLettering'
          | 'cloudDocument'
          | 'document'
          | 'portfolio'
          | 'thirdParty'
          | 'adminMessage'
          | 'ledger'
          | 'visitedPage'
          | 'yousignSignature'
          | 'taxReturnSent'
        accountingFolderId: string
      }
      answer: WebhookSubscription[]
    }
    /**
     * The events of a subscription of the caller, by number
     */
    '/webhook/{id}/events': {
      path: {
        id: string
      }
      query?: {
        /**
         * Events with greater numbers. Default: 0
         */
        after?: number
        /**
         * Events in one answer. Default: 100
         */
        limit?: number
        /**
         * Seconds to wait for something new. Default: 0
         */
        wait?: number
      }
      answer: NumberedNotification[]
    }
    /**
     * The deliveries of a subscription of the caller, with their attempts
     */
    '/webhook/{id}/deliveries': {
      path: {
        id: string
      }
      query?: {
        /**
         * Only those in this state
         */
        state?: 'pending' | 'delivered' | 'failed'
        /**
         * Deliveries after this one: a greater id
         */
        after?: string
        /**
         * Deliveries in one answer. Default: 100
         */
        limit?: number
        /**
         * true: if there are more than limit, the last ones instead of the first. Default: false
         */
        newest?: 'true' | 'false'
      }
      answer: WebhookDelivery[]
    }
    /**
     * This document
     */
    '/openapi.json': {
      answer: OpenApiDocument
    }
  }
  post: {
    /**
     * What changed in many ledgers, or all of them, in one stream of rows that prove themselves
     */
    '/mad/ledgers/changes': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
      }
      body: LedgerChangesRequest
      /**
       * Nothing: the answer has no body
       */
      answer: null
    }
    /**
     * Digests of many ledgers, or all of them, by ranges of entry ids, to compare copies with
     */
    '/mad/ledgers/blocks': {
      query?: {
        /**
         * Version of the format
         */
        version?: '1.0.0'
        /**
         * The folder, instead of the header society-id
         */
        accountingFolderId?: string
      }
      body: LedgerBlocksRequest
      /**
       * Nothing: the answer has no body
       */
      answer: null
    }
    /**
     * Subscribes an address to kinds of events
     */
    '/webhook': {
      body: SubscriptionFields
      answer: WebhookSubscriptionWithSecret
    }
    /**
     * Replaces the secret that signs the deliveries of a subscription
     */
    '/webhook/{id}/rotate-secret': {
      path: {
        id: string
      }
      answer: WebhookSubscriptionWithSecret
    }
    /**
     * Sends deliveries of a subscription of the caller again
     */
    '/webhook/{id}/replay': {
      path: {
        id: string
      }
      body: Replay
      answer: Replayed
    }
    /**
     * Sends one event ping to the address of a subscription at once, and returns the outcome
     */
    '/webhook/{id}/ping': {
      path: {
        id: string
      }
      answer: WebhookPing
    }
  }
  patch: {
    /**
     * Applies a patch to a subscription of the caller, completely or not at all, and enables it
     */
    '/webhook/{id}': {
      path: {
        id: string
      }
      body: SubscriptionChange
      answer: WebhookSubscription
    }
  }
  put: {
    /**
     * Replaces a subscription of the caller, completely or not at all, and enables it
     */
    '/webhook/{id}': {
      path: {
        id: string
      }
      body: SubscriptionFields
      answer: WebhookSubscription
    }
  }
  delete: {
    /**
     * Deletes a subscription of the caller, and discards its pending deliveries
     */
    '/webhook/{id}': {
      path: {
        id: string
      }
      /**
       * Nothing: the answer has no body
       */
      answer: null
    }
  }
}
export interface OpenedRoute {
  path: string
  method: RouteMethod
}
export interface TokenTarget {
  type: TokenLevel
  schemaId: number
  thirdPartyId: number
  /**
   * The folder of a company token, the firm of a firm token
   */
  societyId: number
}
export interface TokenVersion {
  current: number
  latest: number
  beta: boolean
}
export interface Block {
  /**
   * Id of an entry. The first block begins at 0
   */
  from: string
  /**
   * Inclusive. The last block ends at 9007199254740991
   */
  to: string
  /**
   * Movements of entries in this range
   */
  rows: number
  /**
   * Of their lines in NDJSON, each with its line feed, in the usual order
   */
  sha256: string
}
export interface AccountBalance {
  account: SimplifiedAccount
  debit: number
  credit: number
  /**
   * Debit minus credit
   */
  balance: number
}
export interface SimplifiedAccount {
  producerId: string
  number: string
  name: string
}
export interface Entry {
  producerId: string
  attachments: Attachments
  date: string
  dueDate: string | null
  journal: NamedJournal
  currency: EntryCurrency
  movements: EntryMovement[]
  additionalProducerProperties: EntryProperties
}
/**
 * File name to address
 */
export interface Attachments {
  [k: string]: Attachment
}
export interface Attachment {
  type: 'URL'
  value: string
}
export interface NamedJournal {
  producerId: string
  customerReferenceCode: string
  name: string
  type: string
}
export interface EntryCurrency {
  code: string
  /**
   * Only if the currency is not that of the folder
   */
  rate?: number
}
export interface EntryMovement {
  producerId: string
  description: string
  dueDate: string | null
  freeNumber: string | null
  invoiceNumber: string
  value: MovementValue
  attachments: Attachments
  account: SimplifiedAccount
  payment: MovementPayment | null
  analytics: MovementAxis[]
  lettering: Lettering
  filed?: Filed
}
export interface MovementValue {
  credit: number
  debit: number
  /**
   * Credit minus debit
   */
  amount: number
}
export interface MovementPayment {
  producerId: string
  name: string
  code: string
}
export interface MovementAxis {
  producerId: string
  code: string
  name: string
  sections: MovementSection[]
}
export interface MovementSection {
  producerId: string
  amount: number
  /**
   * Percentage
   */
  rate: number
  code: string
  name: string
}
export interface Lettering {
  state: LetteringState
  value: string | null
}
/**
 * Date of the document and third-party account, as a FEC filed them. Only with `columns=extended`, and only if something was filed: otherwise the date is that of the entry, and there is no such account
 */
export interface Filed {
  pieceDate: string | null
  auxiliaryNumber: string | null
  auxiliaryName: string | null
}
export interface EntryProperties {
  source: EntrySource
  partnerMetadata: PartnerMetadata | null
  comment: string | null
  /**
   * Epoch seconds
   */
  createdAt: number
  accountedAt: string
  /**
   * Null: awaiting validation
   */
  validationDate: string | null
  /**
   * Number of the entry in its journal. Only with `columns=extended`
   */
  ecritureNum?: string | null
}
export interface EntrySource {
  name: string
  thirdParty: SourceThirdParty | null
}
export interface SourceThirdParty {
  name: string
  code: string
}
export interface PartnerMetadata {
  partnerId: string
  json?: unknown
}
export interface ExportJob {
  id: string
  status: ExportStatus
  progress?: ExportProgress
  /**
   * While DONE: the address of the file, new in each answer and valid for an hour. It supports GET, with Range. If files are in S3, the signature covers GET only: to read the headers alone, send Range: bytes=0-0. size and fileSha256 are given here
   */
  url?: string
  /**
   * Bytes of the file, as downloaded
   */
  size?: number
  /**
   * Of the file, as downloaded; hexadecimal
   */
  fileSha256?: string
  /**
   * Bytes of the content: the file after decompression, or the file itself if it is not compressed
   */
  contentSize?: number
  /**
   * Movements
   */
  rows?: number
  /**
   * Of the content, hexadecimal
   */
  sha256?: string
  totals?: ExportTotals
  /**
   * While DONE, if the format has notes: how much it left out or altered, by kind. FEC: drafts, outsideBooks, blankValidDates, blankFields, replacedCharacters, columnsLeftOut, earlierImports
   */
  notes?: {
    [k: string]: number
  }
  /**
   * While FAILED: what happened, and when the same parameters will start a new export
   */
  reason?: string
}
/**
 * While INIT
 */
export interface ExportProgress {
  /**
   * Movements so far
   */
  rows: number
  /**
   * null until they are counted
   */
  rowsTotal: number | null
  /**
   * Content so far, before compression
   */
  bytes: number
}
export interface ExportTotals {
  debit: number
  credit: number
}
export interface Ledger {
  /**
   * Id of the folder, for the header society-id
   */
  society: string
  firm: LedgerFirm
  name: string
  reference: string | null
  /**
   * The state of its ledger, as X-Ledger-Cursor on the routes of the folder
   */
  cursor: string
  /**
   * Whether accounts of employees come with their personal data. A copy that was made with the other value differs in accounts, though its cursor is the same
   */
  employees: boolean
}
export interface LedgerFirm {
  id: string
  name: string
}
export interface AccountingFolder {
  name: string
  reference: string | null
  address: Address
  contact: FolderContact
  RCS: TradeRegister
  SIRET: string | null
  capital: number
}
export interface Address {
  addressNumber: string | null
  addressComplement: string | null
  postalCode: string | null
  streetName: string | null
  streetType: string | null
  locatingIndex: string | null
  fullName: string | null
  /**
   * As fullName
   */
  fullname: string | null
  city: string | null
  country: string | null
}
export interface FolderContact {
  firstName: string | null
  lastName: string | null
  phoneNumber: string | null
  mobilePhoneNumber: string | null
  mail: string | null
}
export interface TradeRegister {
  producerId: string
  name: string
}
export interface AccountingFirm {
  producerId: string
  name: string
  siret: string | null
  webSite: string | null
  logo: string | null
  address: Address | null
  contact: FirmContact
}
export interface FirmContact {
  mail: string | null
  tel: string | null
  fax: string | null
}
export interface Payment {
  producerId: string
  name: string
  code: string
  additionalProducerProperties: PaymentProperties
}
export interface PaymentProperties {
  code: string
}
export interface Vat {
  producerId: string
  customerReferenceCode: string
  /**
   * Percentage
   */
  rate: number
  account: VatAccounts
  type: string | null
  exigibility: string | null
  additionalProducerProperties: VatProperties
}
export interface VatAccounts {
  deductible: SimplifiedAccount | null
  collected: SimplifiedAccount | null
}
export interface VatProperties {
  typeCode: string | null
  exigibilityCode: string | null
}
export interface Bank {
  producerId: string
  RIB: string | null
  IBAN: string
  BIC: string
  account: SimplifiedAccount | null
  journal: BankJournal
  additionalProducerProperties: BankProperties
}
export interface BankJournal {
  producerId: string
  name: string
  type: 'BANQUE'
  customerReferenceCode: string
}
export interface BankProperties {
  isDefault: boolean
}
export interface Journal {
  producerId: string
  name: string
  customerReferenceCode: string
  type: string
  counterpartAccount: SimplifiedAccount | null
  additionalProducerProperties: JournalProperties
}
export interface JournalProperties {
  type: string
  locked: boolean
}
/**
 * The first digits of `number` decide what it has: 401 and 411 `company` and `counterpartAccount`; 421 `employee`, which is null for a token without the group `employees`; every other `counterpartAccount` and `correspondanceAccount`
 */
export interface Account {
  producerId: string
  number: string
  name: string
  closed: boolean
  counterpartAccount?: SimplifiedAccount | null
  correspondanceAccount?: SimplifiedAccount | null
  company?: Company
  employee?: Employee | null
}
export interface Company {
  name: string
  SIREN: string | null
  CEO: string | null
  payment: NamedPayment | null
  address: Address | null
  ape: Activity | null
  vat: NamedVat | null
  IBANs: string[]
  contacts: Contact[]
  miscellaneous: CompanyMiscellaneous | null
}
export interface NamedPayment {
  producerId: string
  code: string
}
export interface Activity {
  producerId: string | null
  code: string | null
  name: string | null
}
export interface NamedVat {
  producerId: string
  customerReferenceCode: string
  /**
   * Percentage
   */
  rate: number
}
export interface Contact {
  firstname: string | null
  lastname: string | null
  phoneNumber: string | null
  role: string | null
  email: string | null
}
export interface CompanyMiscellaneous {
  referent: string | null
  language: string | null
  group: string | null
  archived: boolean
}
export interface Employee {
  firstName: string | null
  lastName: string | null
  email: string | null
  phoneNumber: string | null
  phoneNumberBis: string | null
  NIR: string | null
  profession: string | null
  payment: NamedPayment | null
  address: Address | null
  IBANs: string[]
  contacts: Contact[]
  miscellaneous: EmployeeMiscellaneous | null
}
export interface EmployeeMiscellaneous {
  referent: string | null
  language: string | null
  group: string | null
  archived: boolean
  doubtfulAccount: SimplifiedAccount | null
}
export interface Exercice {
  producerId: string
  /**
   * N, N-1, N+1…
   */
  name: string
  period: ExercicePeriod
  state: ExerciceState
  additionalProducerProperties: ExerciceProperties
}
export interface ExercicePeriod {
  start: string
  end: string
  /**
   * Months
   */
  duration: number
  closed: Closing | null
}
export interface Closing {
  at: string
  by: Closer
}
export interface Closer {
  producerId: string | null
  firstName: string | null
  lastName: string | null
}
export interface ExerciceProperties {
  lettering: LetteringSpan
}
export interface AnalyticalAxe {
  producerId: string
  code: string
  name: string
  sections: Section[]
  additionalProducerProperties: AxisProperties
}
export interface Section {
  producerId: string
  code: string
  name: string
  /**
   * Roots of account numbers
   */
  account: string | null
  additionalProducerProperties: SectionProperties
}
export interface SectionProperties {
  closed: boolean
}
export interface AxisProperties {
  defaultSectionId: string | null
}
export interface Society {
  id: string
  name: string
  reference: string | null
  SIRET: string | null
}
export interface WebhookSubscription {
  id: number
  /**
   * Null: nothing is posted
   */
  postUrl: string | null
  onEvents: EventKind[]
  /**
   * Folders; empty: the firm, with folders that come later
   */
  accountingFolderId: string[]
  thirdPartyId: number
}
export interface NumberedNotification {
  /**
   * The number, decimal digits
   */
  sequence: string
  event: Notification
}
export interface ConnectorEvent {
  name: 'connector'
  operation: ConnectorOperation
  scope: EventScope
  data: ConnectorData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface EventScope {
  schemaId: number
  firmId?: number
  firmSIRET?: string
  accountingFolderId?: number
  accountingFolderRef?: string
  accountingFolderSIRET?: string
  /**
   * The person who caused it
   */
  persPhysiqueId?: number
}
export interface ConnectorData {
  id: number
  code: string
  userId?: number
}
export interface AccountingFolderCreateEvent {
  name: 'accountingFolder'
  operation: 'CREATE'
  scope: EventScope
  data: IdentifiedData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface IdentifiedData {
  id: string
}
export interface AccountingFolderUpdateEvent {
  name: 'accountingFolder'
  operation: 'UPDATE'
  scope: EventScope
  data: ChangedData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface ChangedData {
  id: string
  previousState?: {}
  currentState?: {}
}
export interface ExerciceCreateEvent {
  name: 'exercice'
  operation: 'CREATE'
  scope: EventScope
  data: IdentifiedData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface ExerciceUpdateEvent {
  name: 'exercice'
  operation: 'UPDATE'
  scope: EventScope
  data: ChangedData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface ExerciceDeleteEvent {
  name: 'exercice'
  operation: 'DELETE'
  scope: EventScope
  data: IdentifiedData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface AccountingLineEntryEvent {
  name: 'accountingLineEntry'
  operation: 'CREATE'
  scope: EventScope
  data: IdentifiedData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface AccountingEntryLetteringEvent {
  name: 'accountingEntryLettering'
  operation: AccountingEntryLetteringOperation
  scope: EventScope
  data: LetteringData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface LetteringData {
  id: string
  paymentType: string
  piece1?: string
}
export interface CloudDocumentEvent {
  name: 'cloudDocument'
  operation: CloudDocumentOperation
  scope: EventScope
  data: CloudDocumentData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface CloudDocumentData {
  id: string
  status: CloudDocumentStatus
  reason?: string
}
export interface DocumentEvent {
  name: 'document'
  operation: 'CREATE'
  scope: EventScope
  data: DocumentData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface DocumentData {
  id: string
  kind: DocumentKind
  name: string
}
export interface PortfolioEvent {
  name: 'portfolio'
  operation: PortfolioOperation
  scope: EventScope
  data: IdentifiedData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface ThirdPartyEvent {
  name: 'thirdParty'
  operation: ThirdPartyOperation
  scope: EventScope
  data: ThirdPartyData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface ThirdPartyData {
  code: string
}
export interface AdminMessageEvent {
  name: 'adminMessage'
  operation: 'VOID'
  scope: EventScope
  data: AdminMessageData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface AdminMessageData {
  event: string
  socketMessage: SocketMessage
  receivers: string[]
}
export interface SocketMessage {
  id: number
  title: string
  message: string
}
export interface LedgerEvent {
  name: 'ledger'
  operation: 'UPDATE'
  scope: EventScope
  data: LedgerData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface LedgerData {
  cursor: string
}
export interface VisitedPageEvent {
  name: 'visitedPage'
  operation: 'VOID'
  scope: EventScope
  data: VisitedPageData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface VisitedPageData {
  path: string
}
export interface YousignSignatureEvent {
  name: 'yousignSignature'
  operation: 'VOID'
  scope: EventScope
  data: IdentifiedData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface TaxReturnSentEvent {
  name: 'taxReturnSent'
  operation: 'VOID'
  scope: EventScope
  data: TaxReturnSentData
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface TaxReturnSentData {
  idDepot: string
}
export interface WebhookDelivery {
  /**
   * The header webhook-id
   */
  id: string
  /**
   * The header webhook-sequence. Null: from before events had numbers
   */
  sequence: string | null
  events: number
  state: DeliveryState
  /**
   * Whether it was replayed
   */
  replay: boolean
  /**
   * Epoch milliseconds, as the other times
   */
  createdAt: number
  /**
   * Null: it has ended
   */
  nextAttemptAt: number | null
  /**
   * Null: it is pending
   */
  finishedAt: number | null
  /**
   * In order; the newest 20 of them
   */
  attempts: WebhookDeliveryAttempt[]
}
export interface WebhookAttempt {
  /**
   * Time of sending, epoch milliseconds
   */
  at: number
  /**
   * Null: there was no response
   */
  status: number | null
  /**
   * Until the status arrived, or until the attempt failed
   */
  milliseconds: number
  /**
   * Why there was no response
   */
  error: string | null
  /**
   * The first 1,024 bytes of the response, read as UTF-8. Null: there was no response
   */
  answer: string | null
}
export interface OpenApiDocument {
  [k: string]: unknown
}
export interface LedgerChangesRequest {
  /**
   * In the order in which they are wanted. Absent: all folders of the token, in full
   *
   * @minItems 1
   * @maxItems 10000
   */
  ledgers?: AskedLedger[]
}
export interface AskedLedger {
  /**
   * Id of the folder
   */
  society: string
  /**
   * The cursor of the copy: only movements of entries that changed since are sent. Absent: all
   */
  since?: string
  /**
   * With since: further ranges of entry ids to send, both ends included
   *
   * @minItems 1
   * @maxItems 1000
   */
  entries?: EntryRange[]
  tables?: HeldTables
}
/**
 * SHA-256 of the rows that the copy has of a table. A table that still has the same is left out
 */
export interface HeldTables {
  folders?: string
  exercices?: string
  journals?: string
  accounts?: string
  payments?: string
  banks?: string
  axes?: string
  sections?: string
  vats?: string
}
export interface LedgerBlocksRequest {
  /**
   * In the order in which they are wanted. Absent: all folders of the token
   *
   * @minItems 1
   * @maxItems 10000
   */
  ledgers?: AskedLedgerBlocks[]
}
export interface AskedLedgerBlocks {
  /**
   * Id of the folder
   */
  society: string
}
export interface SubscriptionFields {
  /**
   * Where events are posted. Null: nowhere; they are read at /api/v1/webhook/{id}/events
   */
  postUrl: string | null
  /**
   * Kinds of events. All operations of a kind are sent
   *
   * @minItems 1
   */
  onEvents: EventKind[]
  /**
   * Folders. If empty: the firm for a firm token, with folders that come later; its own folder for a company token
   */
  accountingFolderId?: FolderId[]
}
export interface WebhookSubscriptionWithSecret {
  id: number
  /**
   * Null: nothing is posted
   */
  postUrl: string | null
  onEvents: EventKind[]
  /**
   * Folders; empty: the firm, with folders that come later
   */
  accountingFolderId: string[]
  thirdPartyId: number
  signingSecret: string
}
export interface ReplayedNumbers {
  from: number
  to: number
}
export interface ReplayedFailures {
  failed: true
}
export interface Replayed {
  deliveries: number
}
export interface WebhookDisabled {
  since: number
  reason: string
}
export interface AddStep {
  op: 'add'
  path: string
  /**
   * A text, a number, null, or an array of texts and numbers
   */
  value: unknown
}
export interface ReplaceStep {
  op: 'replace'
  path: string
  /**
   * A text, a number, null, or an array of texts and numbers
   */
  value: unknown
}
export interface RemoveStep {
  op: 'remove'
  path: string
}
export interface MoveStep {
  op: 'move'
  from: string
  path: string
}
export interface CopyStep {
  op: 'copy'
  from: string
  path: string
}
export interface TestStep {
  op: 'test'
  path: string
  value: unknown
}
export interface ErrorAnswer {
  error: ApiError
}
export interface ApiError {
  /**
   * One of ERR-VALIDATION, ERR-UNSUPPORTED-VERSION, ERR-SOCIETY-ID-REQUIRED, ERR-INVALID-AUTH-HEADER, ERR-SECRET-HEADER-NOT-SET, ERR-INVALID-SECRET, ERR-API-TOKEN-NOT-FOUND, ERR-FIRM-TOKEN-NOT-FOUND, ERR-THIRD-PARTY-DISCONNECTED, ERR-FORBIDDEN-ROUTE, ERR-FORBIDDEN-ACCESS, ERR-FILE-LINK-INVALID, ERR-NOT-FOUND, ERR-FOLDER-NOT-FOUND, ERR-EXERCICE-NOT-FOUND, ERR-JOURNAL-NOT-FOUND, ERR-ENTRY-NOT-FOUND, ERR-EXPORT-NOT-FOUND, ERR-WEBHOOK-NOT-FOUND, ERR-METHOD-NOT-ALLOWED, ERR-NOT-ACCEPTABLE, ERR-PATCH-TEST-FAILED, ERR-AMBIGUOUS-ENTRY, ERR-WEBHOOK-PULL-ONLY, ERR-WEBHOOK-DISABLED, ERR-TOO-MANY-SUBSCRIPTIONS, ERR-FILE-LINK-EXPIRED, ERR-EVENTS-EXPIRED, ERR-EXPORT-EXPIRED, ERR-CURSOR-EXPIRED, ERR-PRECONDITION-FAILED, ERR-PAYLOAD-TOO-LARGE, ERR-UNSUPPORTED-MEDIA-TYPE, ERR-RANGE-NOT-SATISFIABLE, ERR-TOO-MANY-REQUEST, ERR-TOO-MANY-CONCURRENT-REQUEST, ERR-INTERNAL, ERR-UNAVAILABLE, ERR-API-UNDER-MAINTENANCE
   */
  code: string
  message: string
  details: ErrorDetails
}
export interface ErrorDetails {
  url: string
  method: string
  requestedAt: string
  requestId: string
  issues?: Issue[]
  /**
   * With ERR-AMBIGUOUS-ENTRY: the entries, ascending, at most 100
   */
  producerIds?: string[]
  /**
   * With ERR-EVENTS-EXPIRED: the first number that is kept
   */
  oldest?: string
}
export interface Issue {
  parameter: string
  message: string
}
export interface Movement {
  producerId: string
  description: string
  dueDate: string | null
  freeNumber: string | null
  invoiceNumber: string
  value: MovementValue
  entry: MovementEntry
  attachments: Attachments
  account: SimplifiedAccount
  payment: MovementPayment | null
  analytics: MovementAxis[]
  lettering: Lettering
}
export interface MovementEntry {
  producerId: string
  date: string
  dueDate: string | null
  currency: EntryCurrency
  journal: NamedJournal
  additionalProducerProperties: MovementEntryProperties
  attachments: Attachments
}
export interface MovementEntryProperties {
  source: EntrySource
  partnerMetadata: PartnerMetadata | null
  comment: string | null
  /**
   * Epoch seconds
   */
  createdAt: number
  accountedAt: string
}
/**
 * The first line of an answer to since, before the items
 */
export interface ChangesLine {
  /**
   * As in the request
   */
  since: string
  /**
   * The state of the ledger that this answer leads to
   */
  cursor: string
  /**
   * Ranges of entry ids, both ends included, ascending and disjoint. Drop what you have of them
   */
  entries: EntryRange[]
}
export interface LedgerBlocks {
  society: string
  /**
   * The state of the ledger that the digests are of
   */
  cursor: string
  /**
   * Movements of the ledger, drafts included
   */
  rows: number
  /**
   * Of the digests of the blocks, as bytes, in their order
   */
  digest: string
  tables: TableDigests
  /**
   * Ranges of entry ids, disjoint and ascending, with the digest of their movements as rows of ledgers/changes. Rows of a copy outside every block differ, too
   */
  blocks: Block[]
}
/**
 * Of the other tables, rows as in ledgers/changes, each with its line feed
 */
export interface TableDigests {
  /**
   * Of all rows of folders
   */
  folders: string
  /**
   * Of all rows of exercices
   */
  exercices: string
  /**
   * Of all rows of journals
   */
  journals: string
  /**
   * Of all rows of accounts
   */
  accounts: string
  /**
   * Of all rows of payments
   */
  payments: string
  /**
   * Of all rows of banks
   */
  banks: string
  /**
   * Of all rows of axes
   */
  axes: string
  /**
   * Of all rows of sections
   */
  sections: string
  /**
   * Of all rows of vats
   */
  vats: string
}
export interface RefusedLedger {
  /**
   * Id of the folder
   */
  refused: string
  code: ErrorCode
  message: string
}
export interface SubscriptionMergePatch {
  /**
   * Where events are posted. Null: nowhere; they are read at /api/v1/webhook/{id}/events
   */
  postUrl?: string | null
  /**
   * Kinds of events. All operations of a kind are sent
   *
   * @minItems 1
   */
  onEvents?: EventKind[]
  /**
   * Folders. If empty: the firm for a firm token, with folders that come later; its own folder for a company token
   */
  accountingFolderId?: FolderId[]
}
export interface Health {
  status: 'up'
}
export interface Readiness {
  status: 'ready'
  /**
   * What is missing, but replaced by something else
   */
  degraded?: string[]
  epoch?: Epoch
}
/**
 * A new one begins when another server takes over. Cursors of former ones are refused
 */
export interface Epoch {
  number: number
  began: string
  ageSeconds: number
}

/** Values of parameters that take one of several, by the path of the GET route. */
export const queryValues = {
  '/key/info': {
    mode: ['extended'],
  },
  '/mad/movements': {
    dateFilter: ['document', 'platform', 'accounting'],
    source: ['E', 'M', 'O', 'EXT', 'L', 'IB', 'P', 'AN', 'OD_TVA', 'OD_CALC_IS', 'OD_ECART', 'REM_BQ', 'RB_MANUEL', 'WORKSHEET', 'QUADRA', 'CEGID', 'ACD', 'FEC', 'EXCEL', 'RB_JDC', 'RB_QT', 'RB_SB', 'RB_FTP', 'RTVR', 'QUICK', 'ABO', 'PRLV_SEPA', 'VIRT_SEPA', 'API'],
    lettering: ['none', 'partial', 'complete'],
  },
  '/mad/movements/blocks': {
    dateFilter: ['document', 'platform', 'accounting'],
    source: ['E', 'M', 'O', 'EXT', 'L', 'IB', 'P', 'AN', 'OD_TVA', 'OD_CALC_IS', 'OD_ECART', 'REM_BQ', 'RB_MANUEL', 'WORKSHEET', 'QUADRA', 'CEGID', 'ACD', 'FEC', 'EXCEL', 'RB_JDC', 'RB_QT', 'RB_SB', 'RB_FTP', 'RTVR', 'QUICK', 'ABO', 'PRLV_SEPA', 'VIRT_SEPA', 'API'],
    lettering: ['none', 'partial', 'complete'],
  },
  '/mad/entries': {
    dateFilter: ['document', 'platform', 'accounting'],
    source: ['E', 'M', 'O', 'EXT', 'L', 'IB', 'P', 'AN', 'OD_TVA', 'OD_CALC_IS', 'OD_ECART', 'REM_BQ', 'RB_MANUEL', 'WORKSHEET', 'QUADRA', 'CEGID', 'ACD', 'FEC', 'EXCEL', 'RB_JDC', 'RB_QT', 'RB_SB', 'RB_FTP', 'RTVR', 'QUICK', 'ABO', 'PRLV_SEPA', 'VIRT_SEPA', 'API'],
    columns: ['extended'],
  },
  '/mad/all': {
    format: ['JSON', 'TRA', 'FEC', 'CSV', 'PARQUET'],
    compression: ['gzip', 'zstd'],
    encoding: ['utf-8'],
    columns: ['extended'],
  },
  '/webhook/{id}/deliveries': {
    state: ['pending', 'delivered', 'failed'],
    newest: ['true', 'false'],
  },
} as const
