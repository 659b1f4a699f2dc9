/** A row of the audit (docs/operators/audit.md). */
import { createHash } from 'node:crypto'

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

/** Longer details are kept as their length and SHA-256: a selection may name thousands of entries. */
const charactersMax = 2_000

/**
 * JSON with the members of objects in the order of their names and without those that are undefined: equal values have
 * equal texts, within one process and across versions.
 */
export function canonicalJson(value: unknown): string {
  const text = JSON.stringify(value, (_, member: unknown) => {
    if (member === null || typeof member !== 'object' || Array.isArray(member)) return member
    return Object.fromEntries(Object.entries(member).toSorted(([one], [other]) => (one < other ? -1 : 1)))
  })
  if (text.length <= charactersMax) return text
  return JSON.stringify({ characters: text.length, sha256: createHash('sha256').update(text).digest('hex') })
}
