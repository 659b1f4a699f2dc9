/** Written by `npm run docs:api` from the OpenAPI document: edit the routes of the service, not this file. */

export type Account =
  | {
      producerId: string
      number: string
      name: string
      closed: boolean
      counterpartAccount: {
        producerId: string
        number: string
        name: string
      } | null
      correspondanceAccount: {
        producerId: string
        number: string
        name: string
      } | null
    }
  | {
      producerId: string
      number: string
      name: string
      closed: boolean
      counterpartAccount: {
        producerId: string
        number: string
        name: string
      } | null
      company: {
        name: string
        SIREN: string | null
        CEO: string | null
        payment: {
          producerId: string
          code: string
        } | null
        address: {
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
        } | null
        ape: {
          producerId: string | null
          code: string | null
          name: string | null
        } | null
        vat: {
          producerId: string
          customerReferenceCode: string
          /**
           * Percentage
           */
          rate: number
        } | null
        IBANs: string[]
        contacts: {
          firstname: string | null
          lastname: string | null
          phoneNumber: string | null
          role: string | null
          email: string | null
        }[]
        miscellaneous: {
          referent: string | null
          language: string | null
          group: string | null
          archived: boolean
        } | null
      }
    }
  | {
      producerId: string
      number: string
      name: string
      closed: boolean
      employee: {
        firstName: string | null
        lastName: string | null
        email: string | null
        phoneNumber: string | null
        phoneNumberBis: string | null
        NIR: string | null
        profession: string | null
        payment: {
          producerId: string
          code: string
        } | null
        address: {
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
        } | null
        IBANs: string[]
        contacts: {
          firstname: string | null
          lastname: string | null
          phoneNumber: string | null
          role: string | null
          email: string | null
        }[]
        miscellaneous: {
          referent: string | null
          language: string | null
          group: string | null
          archived: boolean
          doubtfulAccount: {
            producerId: string
            number: string
            name: string
          } | null
        } | null
      } | null
    }
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
export type WebhookDeliveryAttempt = WebhookAttempt & {
  number: number
}
export type WebhookSubscriptionWithSecret = WebhookSubscription & {
  signingSecret: string
}
export type WebhookPing = WebhookAttempt & {
  /**
   * Why there was no response, in a word. Null: there was one
   */
  fault: 'address-refused' | 'dns' | 'connection-refused' | 'tls' | 'time-out' | 'no-answer' | null
  /**
   * The receiver's clock, epoch milliseconds: its header date. Null: it sent none
   */
  receiverDate: number | null
  /**
   * Since when, epoch milliseconds, and why no delivery is sent. Null: deliveries are sent
   */
  disabled: {
    since: number
    reason: string
  } | null
}

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
      answer:
        | {
            path: string
            method: 'get' | 'post' | 'put' | 'delete'
          }[]
        | {
            target: {
              type: 'api' | 'firm'
              schemaId: number
              thirdPartyId: number
              /**
               * The folder of a company token, the firm of a firm token
               */
              societyId: number
            }
            version: {
              current: number
              latest: number
              beta: boolean
            }
            canBeActivated: boolean
            isActivated: boolean
            routes: {
              path: string
              method: 'get' | 'post' | 'put' | 'delete'
            }[]
          }
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
         * true: where there are more than limit, the last ones, not the first. Default: false
         */
        newest?: 'true' | 'false'
      }
      answer: WebhookDelivery[]
    }
    /**
     * This document
     */
    '/openapi.json': {
      answer: {
        [k: string]: unknown
      }
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
      body: {
        /**
         * Where events are posted. Null: nowhere; they are read at /api/v1/webhook/{id}/events
         */
        postUrl: string | null
        /**
         * Kinds of events. All operations of a kind are sent
         *
         * @minItems 1
         */
        onEvents: (
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
        )[]
        /**
         * Folders. If empty: the firm for a firm token, with folders that come later; its own folder for a company token
         */
        accountingFolderId?: (string | number)[]
      }
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
      body:
        | {
            from: number
            to: number
          }
        | {
            failed: true
          }
      answer: {
        deliveries: number
      }
    }
    /**
     * Sends one event ping to the address of a subscription, at once, and tells how that went
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
      body:
        | (
            | {
                op: 'add'
                path: string
                value: string | number | null | (string | number)[]
              }
            | {
                op: 'replace'
                path: string
                value: string | number | null | (string | number)[]
              }
            | {
                op: 'remove'
                path: string
              }
            | {
                op: 'move'
                from: string
                path: string
              }
            | {
                op: 'copy'
                from: string
                path: string
              }
            | {
                op: 'test'
                path: string
                value: unknown
              }
          )[]
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
            onEvents?: (
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
            )[]
            /**
             * Folders. If empty: the firm for a firm token, with folders that come later; its own folder for a company token
             */
            accountingFolderId?: (string | number)[]
          }
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
      body: {
        /**
         * Where events are posted. Null: nowhere; they are read at /api/v1/webhook/{id}/events
         */
        postUrl: string | null
        /**
         * Kinds of events. All operations of a kind are sent
         *
         * @minItems 1
         */
        onEvents: (
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
        )[]
        /**
         * Folders. If empty: the firm for a firm token, with folders that come later; its own folder for a company token
         */
        accountingFolderId?: (string | number)[]
      }
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
  account: {
    producerId: string
    number: string
    name: string
  }
  debit: number
  credit: number
  /**
   * Debit minus credit
   */
  balance: number
}
export interface Entry {
  producerId: string
  /**
   * File name to address
   */
  attachments: {
    [k: string]: {
      type: 'URL'
      value: string
    }
  }
  date: string
  dueDate: string | null
  journal: {
    producerId: string
    customerReferenceCode: string
    name: string
    type: string
  }
  currency: {
    code: string
    /**
     * Only if the currency is not that of the folder
     */
    rate?: number
  }
  movements: {
    producerId: string
    description: string
    dueDate: string | null
    freeNumber: string | null
    invoiceNumber: string
    value: {
      credit: number
      debit: number
      /**
       * Credit minus debit
       */
      amount: number
    }
    /**
     * File name to address
     */
    attachments: {
      [k: string]: {
        type: 'URL'
        value: string
      }
    }
    account: {
      producerId: string
      number: string
      name: string
    }
    payment: {
      producerId: string
      name: string
      code: string
    } | null
    analytics: {
      producerId: string
      code: string
      name: string
      sections: {
        producerId: string
        amount: number
        /**
         * Percentage
         */
        rate: number
        code: string
        name: string
      }[]
    }[]
    lettering: {
      state: 'none' | 'partial' | 'complete'
      value: string | null
    }
    /**
     * Date of the document and third-party account, as a FEC filed them. Only with `columns=extended`, and only if something was filed: otherwise the date is that of the entry, and there is no such account
     */
    filed?: {
      pieceDate: string | null
      auxiliaryNumber: string | null
      auxiliaryName: string | null
    }
  }[]
  additionalProducerProperties: {
    source: {
      name: string
      thirdParty: {
        name: string
        code: string
      } | null
    }
    partnerMetadata: {
      partnerId: string
      json?: unknown
    } | null
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
}
export interface ExportJob {
  id: string
  status: 'INIT' | 'DONE' | 'FAILED'
  /**
   * While INIT
   */
  progress?: {
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
  totals?: {
    debit: number
    credit: number
  }
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
export interface Ledger {
  /**
   * Id of the folder, for the header society-id
   */
  society: string
  firm: {
    id: string
    name: string
  }
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
export interface AccountingFolder {
  name: string
  reference: string | null
  address: {
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
  contact: {
    firstName: string | null
    lastName: string | null
    phoneNumber: string | null
    mobilePhoneNumber: string | null
    mail: string | null
  }
  RCS: {
    producerId: string
    name: string
  }
  SIRET: string | null
  capital: number
}
export interface AccountingFirm {
  producerId: string
  name: string
  siret: string | null
  webSite: string | null
  logo: string | null
  address: {
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
  } | null
  contact: {
    mail: string | null
    tel: string | null
    fax: string | null
  }
}
export interface Payment {
  producerId: string
  name: string
  code: string
  additionalProducerProperties: {
    code: string
  }
}
export interface Vat {
  producerId: string
  customerReferenceCode: string
  /**
   * Percentage
   */
  rate: number
  account: {
    deductible: {
      producerId: string
      number: string
      name: string
    } | null
    collected: {
      producerId: string
      number: string
      name: string
    } | null
  }
  type: string | null
  exigibility: string | null
  additionalProducerProperties: {
    typeCode: string | null
    exigibilityCode: string | null
  }
}
export interface Bank {
  producerId: string
  RIB: string | null
  IBAN: string
  BIC: string
  account: {
    producerId: string
    number: string
    name: string
  } | null
  journal: {
    producerId: string
    name: string
    type: 'BANQUE'
    customerReferenceCode: string
  }
  additionalProducerProperties: {
    isDefault: boolean
  }
}
export interface Journal {
  producerId: string
  name: string
  customerReferenceCode: string
  type: string
  counterpartAccount: {
    producerId: string
    number: string
    name: string
  } | null
  additionalProducerProperties: {
    type: string
    locked: boolean
  }
}
export interface Exercice {
  producerId: string
  /**
   * N, N-1, N+1…
   */
  name: string
  period: {
    start: string
    end: string
    /**
     * Months
     */
    duration: number
    closed: {
      at: string
      by: {
        producerId: string | null
        firstName: string | null
        lastName: string | null
      }
    } | null
  }
  state: 'open' | 'closed'
  additionalProducerProperties: {
    lettering: 'MONO' | 'MULTI'
  }
}
export interface AnalyticalAxe {
  producerId: string
  code: string
  name: string
  sections: {
    producerId: string
    code: string
    name: string
    /**
     * Roots of account numbers
     */
    account: string | null
    additionalProducerProperties: {
      closed: boolean
    }
  }[]
  additionalProducerProperties: {
    defaultSectionId: string | null
  }
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
  onEvents: (
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
  )[]
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
  operation: 'CREATE' | 'UPDATE' | 'DELETE'
  scope: EventScope
  data: {
    id: number
    code: string
    userId?: number
  }
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
export interface AccountingFolderCreateEvent {
  name: 'accountingFolder'
  operation: 'CREATE'
  scope: EventScope
  data: {
    id: string
  }
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface AccountingFolderUpdateEvent {
  name: 'accountingFolder'
  operation: 'UPDATE'
  scope: EventScope
  data: {
    id: string
    previousState?: {}
    currentState?: {}
  }
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface ExerciceCreateEvent {
  name: 'exercice'
  operation: 'CREATE'
  scope: EventScope
  data: {
    id: string
  }
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
  data: {
    id: string
    previousState?: {}
    currentState?: {}
  }
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
  data: {
    id: string
  }
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
  data: {
    id: string
  }
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
  operation: 'CREATE' | 'DELETE'
  scope: EventScope
  data: {
    id: string
    paymentType: string
    piece1?: string
  }
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface CloudDocumentEvent {
  name: 'cloudDocument'
  operation: 'CREATE' | 'UPDATE'
  scope: EventScope
  data: {
    id: string
    status: 'completed' | 'rejected'
    reason?: string
  }
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface DocumentEvent {
  name: 'document'
  operation: 'CREATE'
  scope: EventScope
  data: {
    id: string
    kind: 'AF' | 'PF' | 'DB' | 'ED' | 'MF'
    name: string
  }
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface PortfolioEvent {
  name: 'portfolio'
  operation: 'CREATE' | 'DELETE'
  scope: EventScope
  data: {
    id: string
  }
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
  operation: 'CREATE' | 'UPDATE' | 'DELETE'
  scope: EventScope
  data: {
    code: string
  }
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface AdminMessageEvent {
  name: 'adminMessage'
  operation: 'VOID'
  scope: EventScope
  data: {
    event: string
    socketMessage: {
      id: number
      title: string
      message: string
    }
    receivers: string[]
  }
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface LedgerEvent {
  name: 'ledger'
  operation: 'UPDATE'
  scope: EventScope
  data: {
    cursor: string
  }
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface VisitedPageEvent {
  name: 'visitedPage'
  operation: 'VOID'
  scope: EventScope
  data: {
    path: string
  }
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface YousignSignatureEvent {
  name: 'yousignSignature'
  operation: 'VOID'
  scope: EventScope
  data: {
    id: string
  }
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
  data: {
    idDepot: string
  }
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
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
  state: 'pending' | 'delivered' | 'failed'
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
export interface LedgerChangesRequest {
  /**
   * In the order in which they are wanted. Absent: all folders of the token, in full
   *
   * @minItems 1
   * @maxItems 10000
   */
  ledgers?: {
    /**
     * Id of the folder
     */
    society: string
    /**
     * The cursor of the copy: movements only of what changed since. Absent: all
     */
    since?: string
    /**
     * With since: ranges of entry ids that are wanted besides, both ends included
     *
     * @minItems 1
     * @maxItems 1000
     */
    entries?: string[][]
    /**
     * SHA-256 of the rows that the copy has of a table. One that is still the same is left out
     */
    tables?: {
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
  }[]
}
export interface LedgerBlocksRequest {
  /**
   * In the order in which they are wanted. Absent: all folders of the token
   *
   * @minItems 1
   * @maxItems 10000
   */
  ledgers?: {
    /**
     * Id of the folder
     */
    society: string
  }[]
}
export interface PingEvent {
  name: 'ping'
  operation: 'VOID'
  scope: EventScope
  data: {}
  /**
   * The same each time this event is sent to this subscription
   */
  webhookId: string
  /**
   * Epoch milliseconds
   */
  createdAt: number
}
export interface Movement {
  producerId: string
  description: string
  dueDate: string | null
  freeNumber: string | null
  invoiceNumber: string
  value: {
    credit: number
    debit: number
    /**
     * Credit minus debit
     */
    amount: number
  }
  entry: {
    producerId: string
    date: string
    dueDate: string | null
    currency: {
      code: string
      /**
       * Only if the currency is not that of the folder
       */
      rate?: number
    }
    journal: {
      producerId: string
      customerReferenceCode: string
      name: string
      type: string
    }
    additionalProducerProperties: {
      source: {
        name: string
        thirdParty: {
          name: string
          code: string
        } | null
      }
      partnerMetadata: {
        partnerId: string
        json?: unknown
      } | null
      comment: string | null
      /**
       * Epoch seconds
       */
      createdAt: number
      accountedAt: string
    }
    /**
     * File name to address
     */
    attachments: {
      [k: string]: {
        type: 'URL'
        value: string
      }
    }
  }
  /**
   * File name to address
   */
  attachments: {
    [k: string]: {
      type: 'URL'
      value: string
    }
  }
  account: {
    producerId: string
    number: string
    name: string
  }
  payment: {
    producerId: string
    name: string
    code: string
  } | null
  analytics: {
    producerId: string
    code: string
    name: string
    sections: {
      producerId: string
      amount: number
      /**
       * Percentage
       */
      rate: number
      code: string
      name: string
    }[]
  }[]
  lettering: {
    state: 'none' | 'partial' | 'complete'
    value: string | null
  }
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
  entries: string[][]
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
  /**
   * Of the other tables, rows as in ledgers/changes, each with its line feed
   */
  tables: {
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
  /**
   * Ranges of entry ids, disjoint and ascending, with the digest of their movements as rows of ledgers/changes. Rows of a copy outside every block differ, too
   */
  blocks: Block[]
}
export interface RefusedLedger {
  /**
   * Id of the folder
   */
  refused: string
  code:
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
  message: string
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
