/** What is noted of a request while it is answered, and the row that it becomes. Pure. */
import type { AnsweredRequest, Outcome } from './audit-row.ts'
import { canonicalJson } from './canonical-json.ts'

/** Only requests with these facts get a row. Ids are decimal digits. */
export interface AnswerFacts {
  thirdPartyId: string | null
  tokenId: string | null
  schemaId: string
  /** `/api/v1/mad/movements` */
  route: string
  /** What was asked, checked. No secrets, and nothing of books. */
  selection: object
  rows?: number
  bytes?: number
  sha256?: string | undefined
  cursor?: string | undefined
}

/** How its answer ended. */
interface AnswerEnd {
  at: Date
  /** `GET` */
  method: string
  requestId: string
  folderId: string | undefined
  /** Undefined if the client left before there was an answer. */
  status: number | undefined
  /** Whether its last byte was given to the network. */
  isWhole: boolean
  /** Code of an error. */
  code: string | undefined
}

export function answeredRequest(facts: AnswerFacts, end: AnswerEnd): AnsweredRequest {
  const outcome = outcomeOf(end)
  // What the export counted is no evidence of what arrived.
  const { rows, sha256 } = outcome === 'sent' ? facts : {}
  return {
    at: end.at,
    thirdPartyId: facts.thirdPartyId,
    tokenId: facts.tokenId,
    act: `${end.method} ${facts.route}`,
    schemaId: facts.schemaId,
    folderId: end.folderId ?? null,
    requestId: end.requestId,
    details: canonicalJson(facts.selection),
    rows: rows ?? null,
    bytes: facts.bytes ?? null,
    sha256: sha256 ?? null,
    cursor: facts.cursor ?? null,
    outcome,
    code: end.code ?? null,
  }
}

function outcomeOf({ status, isWhole }: AnswerEnd): Outcome {
  if (status === undefined || !isWhole) return 'cut'
  if (status === 304) return 'unchanged'
  if (status < 400) return 'sent'
  return status < 500 ? 'refused' : 'failed'
}
