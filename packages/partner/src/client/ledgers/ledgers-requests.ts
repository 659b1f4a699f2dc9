/** Requests the list of ledgers that a token may read, and the rows or digests of many ledgers. */
import { clientError } from '../errors.ts'
import { type Answer, answerFacts } from '../http/answer.ts'
import { acceptJson, type Requests, sendFor } from '../requests.ts'
import type {
  Ledger,
  LedgerChangesOptions,
  LedgerList,
  LedgersOptions,
  WantedLedger,
} from './ledger-parts.ts'

/** Most ledgers that one request may name. */
export const ledgersMax = 10_000
/** Most ranges of entries that one request may name for a ledger. */
export const rangesMax = 1_000

/** @param what to request of the ledgers: `changes` or `blocks` */
export function askLedgers(
  requests: Requests,
  what: 'changes' | 'blocks',
  type: string,
  ledgers: readonly WantedLedger[],
  { signal, encoding }: LedgerChangesOptions,
): Promise<Answer> {
  return sendFor(requests, type, encoding, {
    method: 'POST',
    isRead: true,
    path: `/mad/ledgers/${what}`,
    query: { version: '1.0.0' },
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ ledgers }),
    signal,
  })
}

/**
 * The ledgers, each with its cursor (docs/spec/ledgers.md#the-list).
 * @returns undefined if the list has not changed since `after`
 */
export async function listLedgers(
  requests: Requests,
  { after, wait, signal }: LedgersOptions,
): Promise<LedgerList | undefined> {
  const { answer, value } = await requests.json({
    path: '/mad/ledgers',
    query: { version: '1.0.0', wait: after === undefined ? undefined : wait },
    headers: { ...acceptJson(), ...(after === undefined ? {} : { 'If-None-Match': after }) },
    heldMs: (wait ?? 0) * 1000,
    signal,
  })
  if (answer.status === 304 && after !== undefined) return undefined
  const { etag } = answer.headers
  if (etag === undefined || value === undefined)
    throw clientError(
      'UNEXPECTED-ANSWER',
      `The list of ledgers came ${etag === undefined ? 'without an ETag' : 'without its body'}: a proxy on the way may have changed it`,
      answerFacts(answer),
    )
  const ledgers = value as Ledger[]
  const unordered = ledgers.find(
    ({ society }, at) => at > 0 && Number(society) <= Number(ledgers[at - 1]!.society),
  )
  if (!unordered) return { ledgers, etag }
  const message = `The list of ledgers is not ascending at ${unordered.society}`
  throw clientError('NOT-PROVEN', message, answerFacts(answer))
}
