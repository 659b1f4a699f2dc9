/** Where a proxy or the runtime shows no trailers: whether anything comes after the last line. */
import { type QueryValue, type Requests, requireType } from './requests.ts'

export interface EndQuestion {
  path: string
  /** With `after`: the last id that arrived. */
  query: Record<string, QueryValue>
  /** The ETag of the state that is read. */
  etag: string | undefined
  signal: AbortSignal | undefined
}

/**
 * Asks in JSON, where nothing more is `[]`: a body that was ended early on the way may be empty, and is never that.
 * @throws {unknown} what the request throws: status 412 if the ledger has changed since
 */
export async function askEnd(
  requests: Requests,
  { path, query, etag, signal }: EndQuestion,
): Promise<{ isEnd: boolean; cursor: string | undefined }> {
  const type = 'application/json'
  const headers = { Accept: type, ...(etag === undefined ? {} : { 'If-Match': etag }) }
  const request = { path, query, headers, signal }
  const answer = await requests.send(request)
  requireType(answer, type, request)
  let text = ''
  for await (const chunk of answer.body) {
    text += new TextDecoder().decode(chunk)
    if (text.length > 2) break
  }
  return { isEnd: text.trim() === '[]', cursor: answer.headers['x-ledger-cursor'] }
}
