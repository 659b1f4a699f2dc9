/** What the end of a stream proves: its trailers, or that nothing comes after the last line. */
import type { Hash } from 'node:crypto'
import { clientError } from './errors.ts'
import type { Answer } from './http/answer.ts'
import { type Request, type Requests, requireType } from './requests.ts'

/**
 * Asks in JSON, where nothing more is `[]`: a body that was ended early on the way may be empty, and is never that.
 * @param question its query has `after`, the last id that arrived; `etag` is that of the state that is read
 * @throws {unknown} what the request throws: status 412 if the ledger has changed since
 */
export async function askEnd(
  requests: Requests,
  question: Pick<Request, 'path' | 'query' | 'signal'> & { etag?: string | undefined },
): Promise<{ isEnd: boolean; cursor: string | undefined }> {
  const type = 'application/json'
  const { etag, ...request } = question
  const headers = { Accept: type, ...(etag === undefined ? {} : { 'If-Match': etag }) }
  const answer = await requests.send({ ...request, headers })
  requireType(answer, type, request)
  let text = ''
  for await (const chunk of answer.body) {
    text += new TextDecoder().decode(chunk)
    if (text.length > 2) break
  }
  return { isEnd: text.trim() === '[]', cursor: answer.headers['x-ledger-cursor'] }
}

export function hasBothTrailers(answer: Answer): boolean {
  const { 'x-row-count': rows, 'x-content-sha256': sha256 } = answer.trailers()
  return rows !== undefined && sha256 !== undefined
}

/**
 * @param hash of the body, if its digest was asked for
 * @returns whether the trailers prove the body; not if they did not come
 * @throws {GrandlivreError} NOT-PROVEN if one is another, or if the rows came without the digest: a count says nothing of
 *   the bytes, and what removes one trailer may have changed them
 */
export function agreesWithTrailers(answer: Answer, rows: number, hash: Hash | undefined): boolean {
  const { 'x-row-count': rowsSent, 'x-content-sha256': sha256Sent } = answer.trailers()
  const fail = (message: string) =>
    clientError('NOT-PROVEN', message, { requestId: answer.headers['x-request-id'] })
  if (rowsSent !== undefined && rowsSent !== String(rows))
    throw fail(`${rows} rows arrived, and the trailer X-Row-Count says ${rowsSent}`)
  if (!hash) return rowsSent !== undefined
  if (sha256Sent !== undefined && sha256Sent !== hash.digest('hex'))
    throw fail('What arrived differs from the trailer X-Content-SHA256')
  if (rowsSent !== undefined && sha256Sent === undefined)
    throw fail('The trailer X-Row-Count came without X-Content-SHA256, so what arrived cannot be proven')
  return rowsSent !== undefined
}
