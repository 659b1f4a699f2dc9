/** A row of the audit (docs/operators/audit.md). */

/** How an answer ended: `unchanged` is a 304, `refused` a 4xx, `failed` a 5xx, `cut` never arrived whole. */
export type Outcome = 'sent' | 'unchanged' | 'cut' | 'refused' | 'failed'

/** A request that was answered, or whose answer was cut off. Ids are decimal digits. */
export interface AnsweredRequest {
  /** When its answer ended. */
  at: Date
  thirdPartyId: string | null
  tokenId: string | null
  /** `GET /api/v1/mad/movements` */
  act: string
  schemaId: string | null
  folderId: string | null
  requestId: string
  /** The selection as canonical JSON (`canonicalJson`). No secrets, and nothing of books. */
  details: string
  /** Items of the answer, or movements of the file; null if it has none or was cut. */
  rows: number | null
  /** Bytes of a streamed body that were sent; null for other answers. */
  bytes: number | null
  /** Of the content before compression, hexadecimal; null if it was not computed. */
  sha256: string | null
  /** Names the state of the ledger that the answer shows. */
  cursor: string | null
  outcome: Outcome
  /** Code of an error. */
  code: string | null
}

export type Details = Record<string, string | number | boolean | null>

/** What staff did. Ids are decimal digits. */
export interface StaffAct {
  /** The user of the command, or `console <key name>`. The login of the database is added. */
  staff: string
  /** `token issue` */
  act: string
  thirdPartyId?: string | undefined
  tokenId?: string | undefined
  schemaId?: string | null | undefined
  folderId?: string | null | undefined
  /** What else it concerned. No secrets, and nothing of books. */
  details?: Details
}

/** A row as it is kept. Numbers, ids and hashes as texts: decimal digits, hexadecimal. */
export interface AuditRow {
  number: string
  /** Seconds since 1970 with six decimals. */
  at: string
  thirdPartyId: string | null
  tokenId: string | null
  staff: string | null
  act: string
  schemaId: string | null
  folderId: string | null
  requestId: string | null
  details: string
  rows: string | null
  bytes: string | null
  sha256: string | null
  cursor: string | null
  outcome: string
  code: string | null
  hash: string
}
