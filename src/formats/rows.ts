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

/** The composite type `address`. */
export interface Address {
  number: string | null
  locatingIndex: string | null
  streetType: string | null
  streetName: string | null
  complement: string | null
  postalCode: string | null
  city: string | null
  country: string | null
}

export interface Contact {
  firstname: string | null
  lastname: string | null
  phoneNumber: string | null
  role: string | null
  email: string | null
}

export interface Miscellaneous {
  referent: string | null
  language: string | null
  group: string | null
  archived: boolean
}

/** Maps file names to their URLs. */
export type Attachments = Record<string, string>

export interface PaymentRow extends FolderKey {
  id: string
  /** CB, VIRT, ESP, CHQ, PRLV or LCR; partners see any other code as CHQ. */
  code: string
}

export interface VatCodeRow extends FolderKey {
  id: string
  code: string
  /** Hundredths of a percent: 2000 is 20 %. */
  rate: number
}

export interface AccountRow extends FolderKey {
  id: string
  /** 1 to 40 digits and capital letters. */
  number: string
  name: string
  closed: boolean
  counterpartAccountId: string | null
  correspondanceAccountId: string | null
}

/** The company of an account with root 401 or 411. */
export interface CompanyRow extends FolderKey {
  accountId: string
  name: string
  siren: string | null
  ceo: string | null
  paymentId: string | null
  vatId: string | null
  address: Address | null
  apeProducerId: string | null
  apeCode: string | null
  apeName: string | null
  ibans: string[]
  contacts: Contact[]
  miscellaneous: Miscellaneous | null
}

/** The employee of an account with root 421. */
export interface EmployeeRow extends FolderKey {
  accountId: string
  firstName: string | null
  lastName: string | null
  email: string | null
  phoneNumber: string | null
  phoneNumberBis: string | null
  nir: string | null
  profession: string | null
  paymentId: string | null
  address: Address | null
  ibans: string[]
  contacts: Contact[]
  miscellaneous: Miscellaneous | null
  doubtfulAccountId: string | null
}

export type JournalType =
  | 'ACH'
  | 'VTE'
  | 'BQ'
  | 'CAISSE'
  | 'A_EXT'
  | 'EXT'
  | 'AN'
  | 'NFD'
  | 'RBAL'
  | 'OD'
  | 'OD_AUDIT'
  | 'OD_PAIE'
  | 'OD_LET'
  | 'OD_DECL_FISCALE'
  | 'OD_EXC'

export interface JournalRow extends FolderKey {
  id: string
  code: string
  name: string
  type: JournalType
  counterpartAccountId: string | null
  locked: boolean
}

export interface BankRow extends FolderKey {
  id: string
  rib: string | null
  iban: string
  bic: string
  accountId: string | null
  journalId: string
  isDefault: boolean
}

export interface AxisRow extends FolderKey {
  id: string
  code: string
  name: string
  /** A foreign key that is checked at commit, because sections are loaded after their axis. */
  defaultSectionId: string | null
}

export interface SectionRow extends FolderKey {
  id: string
  axisId: string
  code: string
  name: string
  accountRoots: string[]
  closed: boolean
}

export interface ExerciceRow extends FolderKey {
  id: string
  startDate: string
  endDate: string
  lettering: 'MONO' | 'MULTI'
  closedAt: string | null
  closedById: string | null
  closedByFirstName: string | null
  closedByLastName: string | null
}

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
