/** Answers of the service as a partner reads them while servers come and go. */
import { once } from 'node:events'
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { type Findings, Unanswered } from './findings.ts'

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

export interface Caller {
  /** Addresses of the processes of the service; requests go to each in turn. */
  urls: string[]
  headers: Record<string, string>
  findings: Findings
}

/** Longer than a failover takes. */
const requestMs = 45_000
const agent = new Agent({ keepAlive: false })
let turns = 0

/**
 * Reads the whole answer.
 * @throws {Unanswered} if the answer broke off, or the service is not there
 */
export async function read(
  { urls, headers, findings }: Caller,
  path: string,
  more: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  const url = path.startsWith('http') ? path : `${urls[turns++ % urls.length]}${path}`
  const outgoing = request(url, {
    agent,
    method: more.method ?? 'GET',
    headers: { ...headers, ...more.headers },
    signal: AbortSignal.timeout(requestMs),
  })
  outgoing.end(more.body)
  const chunks: Buffer[] = []
  let message: IncomingMessage
  try {
    ;[message] = (await once(outgoing, 'response')) as [IncomingMessage]
    for await (const chunk of message) chunks.push(chunk)
  } catch (error) {
    findings.note(`no answer: ${(error as { code?: string }).code ?? (error as Error).name}`)
    throw new Unanswered(String(error))
  }
  const text = Buffer.concat(chunks).toString('utf8')
  const { statusCode: status = 0, trailers } = message
  if (status >= 400) findings.note(`${status} ${/"code":"([^"]+)"/.exec(text)?.[1] ?? ''}`)
  if (status === 200 && message.headers['content-type']?.startsWith('application/x-ndjson')) {
    const lines = text.split('\n').length - 1 - (path.includes('since=') ? 1 : 0)
    if (trailers['x-row-count'] !== String(lines))
      findings.add('short streams that look whole', `${path}: ${lines} lines, ${JSON.stringify(trailers)}`)
  }
  return { status, headers: message.headers, text }
}

/** @throws {Unanswered} unless the answer has one of these statuses */
export async function expected(answer: Promise<Answer>, ...statuses: number[]): Promise<Answer> {
  const { status, headers, text } = await answer
  if (!statuses.includes(status)) throw new Unanswered(`${status} ${text.slice(0, 200)}`)
  return { status, headers, text }
}
