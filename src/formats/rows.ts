/**
 * The rows of a folder's accounting data as they are loaded: one type per table of migration 0002. Ids are decimal
 * strings, money is in minor units (cents, integers, never floating-point), days are 'YYYY-MM-DD', instants are ISO
 * 8601 with a time zone.
 */

/** Identifies a folder; the first two columns of every table here. */
export interface FolderKey {
  schemaId: string
  folderId: string
}

/** First and last day, both inclusive, `YYYY-MM-DD`. */
export interface Period {
  start: string
  end: string
}

/** Maps file names to their URLs. */
export type Attachments = Record<string, string>

/** Source codes of entries (docs/spec/resources.md#source-codes). */
// biome-ignore format: a table
export const sourceCodes = [
  'E', 'M', 'O', 'EXT', 'L', 'IB', 'P', 'AN', 'OD_TVA', 'OD_CALC_IS', 'OD_ECART', 'REM_BQ', 'RB_MANUEL', 'WORKSHEET',
  'QUADRA', 'CEGID', 'ACD', 'FEC', 'EXCEL', 'RB_JDC', 'RB_QT', 'RB_SB', 'RB_FTP', 'RTVR', 'QUICK', 'ABO', 'PRLV_SEPA',
  'VIRT_SEPA', 'API',
] as const

export interface EntryRow extends FolderKey {
  id: string
  exerciceId: string
  journalId: string
  date: string
  dueDate: string | null
  accountedAt: string
  createdAt: string
  /** Null for a draft, which awaits validation. */
  validatedAt: string | null
  source: string
  /** The partner that sent it, if the source is API. */
  thirdPartyId: string | null
  currency: string
  /** Decimal text such as '1.0832', only if the currency is not the folder's. */
  rate: string | null
  comment: string | null
  partnerMetadata: { partnerId: string; json: unknown } | null
  attachments: Attachments | null
  /** EcritureNum; null for a draft without one. Without it, a validated entry gets one when it is loaded. */
  number: string | null
}

/** What most entries do not have. */
export const blankEntry = {
  dueDate: null,
  thirdPartyId: null,
  rate: null,
  comment: null,
  partnerMetadata: null,
  attachments: null,
  number: null,
} as const satisfies Partial<EntryRow>

export type LetteringState = 'none' | 'partial' | 'complete'

export interface MovementRow extends FolderKey {
  exerciceId: string
  entryId: string
  id: string
  accountId: string
  description: string
  dueDate: string | null
  freeNumber: string | null
  invoiceNumber: string
  debit: bigint
  credit: bigint
  paymentId: string | null
  letteringState: LetteringState
  /** Null exactly when the state is none; without the `*` that partners see before a partial code. */
  letteringCode: string | null
  /**
   * Flat triples: section id, amount in minor units, rate in ten-thousandths of a percent (1000000n is 100 %). Sections
   * of one axis are adjacent. Shares are written and read only with their movement, hence an array: a table would be a
   * third stream to merge.
   */
  shares: bigint[] | null
  attachments: Attachments | null
}

/** What most movements do not have. */
export const blankMovement = {
  dueDate: null,
  freeNumber: null,
  paymentId: null,
  letteringState: 'none',
  letteringCode: null,
  shares: null,
  attachments: null,
} as const satisfies Partial<MovementRow>
