/** Shared by the examples of a partner: authenticated requests and their results as lines. Needs only Node 24. */
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { json } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'

export interface Partner {
  /** `https://ledger.example.com` */
  url: string
  token: string
  secret: string
}

/** The variables that `partnerFrom` reads, for the help of a program. */
export const environmentHelp = `Environment:
  GRANDLIVRE_URL     address of the service
  GRANDLIVRE_TOKEN   access token of a company: glv_api_...
  GRANDLIVRE_SECRET  partner secret: glv_secret_...`

/** @throws {Error} naming the variables, if one is missing */
export function partnerFrom(env: NodeJS.ProcessEnv): Partner {
  const { GRANDLIVRE_URL: url, GRANDLIVRE_TOKEN: token, GRANDLIVRE_SECRET: secret } = env
  if (url && token && secret) return { url: url.replace(/\/$/, ''), token, secret }
  throw new Error('Set GRANDLIVRE_URL, GRANDLIVRE_TOKEN and GRANDLIVRE_SECRET')
}

/** The service has answered with an error. */
export class Refused extends Error {
  readonly status: number
  /** Branch on this, not on the message. */
  readonly code: string
  readonly retryAfterMs: number | undefined

  constructor(message: string, status: number, code: string, retryAfterMs: number | undefined) {
    super(message)
    this.status = status
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}

/**
 * Sends a request and returns the response once its headers have arrived. After 429 it waits for Retry-After. Does not
 * use `fetch`, which hides trailers.
 * @param path with its query
 * @throws {Refused} for every status but 200 and 304, with the error of the service
 */
export async function ask(
  partner: Partner,
  path: string,
  headers: Record<string, string> = {},
): Promise<IncomingMessage> {
  for (;;) {
    const response = await send(partner, path, headers)
    const { statusCode: status = 0 } = response
    if (status === 200 || status === 304) return response
    const { error } = (await json(response)) as ErrorBody
    const retryAfter = response.headers['retry-after']
    const retryAfterMs = retryAfter === undefined ? undefined : Number(retryAfter) * 1000
    if (status !== 429 || retryAfterMs === undefined) {
      const lines = [`GET ${path}: ${status} ${error.code}: ${error.message}`, ...issuesOf(error)]
      throw new Refused(lines.join('\n'), status, error.code, retryAfterMs)
    }
    showProgress(`The rate limit is reached: waiting ${retryAfter} s`)
    await delay(retryAfterMs)
  }
}

interface ErrorBody {
  error: {
    code: string
    message: string
    details?: { issues?: { parameter: string; message: string }[] }
  }
}

/** A line for each problem of a request (400 ERR-VALIDATION). */
function issuesOf({ details }: ErrorBody['error']): string[] {
  return (details?.issues ?? []).map(({ parameter, message }) => `  ${parameter} ${message}`)
}

function send({ url, token, secret }: Partner, path: string, headers: Record<string, string>) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const request = url.startsWith('https:') ? requestHttps : requestHttp
  const sent = request(url + path, {
    headers: { Authorization: `Bearer ${token}`, 'X-Third-Party-Secret': secret, ...headers },
  })
  sent.on('response', resolve)
  sent.on('error', reject)
  sent.end()
  return promise
}

const redrawMs = 100
const lineMs = 5_000
let shownAt = process.stdout.isTTY ? 0 : performance.now()

/** On a terminal one line that is redrawn, elsewhere a line every few seconds. */
export function showProgress(text: string): void {
  const { isTTY, columns } = process.stdout
  const now = performance.now()
  if (now - shownAt < (isTTY ? redrawMs : lineMs)) return
  shownAt = now
  // A line that wraps could not be redrawn.
  process.stdout.write(isTTY ? `\r\x1b[K${text.slice(0, (columns || 80) - 1)}` : `${text}\n`)
}

/** Replaces the progress line on a terminal. */
export function print(line: string): void {
  process.stdout.write(`${process.stdout.isTTY ? '\r\x1b[K' : ''}${line}\n`)
}

export interface Result {
  ms: number
  /** Bytes as received. */
  wireBytes?: number
  /** After decompression. */
  bytes?: number
  rows?: number
}

const labelCharacters = 32
const widths = [11, 9, 8, 5, 10]

export function printHeading(label: string): void {
  print(columns(label, ['on the wire', 'body', 'seconds', 'MB/s', 'rows']))
  print('-'.repeat(79))
}

/** MB/s are of the body, before compression. */
export function printResult(label: string, { ms, wireBytes, bytes, rows }: Result): void {
  const cells = [
    wireBytes === undefined ? '' : sizeOf(wireBytes),
    bytes === undefined ? '' : sizeOf(bytes),
    (ms / 1000).toFixed(3),
    bytes === undefined ? '' : (bytes / 1000 / ms).toFixed(0),
    rows?.toLocaleString('en') ?? '',
  ]
  print(columns(label, cells))
}

/** In MB of a million bytes. */
export function sizeOf(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}

function columns(label: string, cells: string[]): string {
  const padded = cells.map((cell, column) => cell.padStart(widths[column]!))
  return `${label.padEnd(labelCharacters)}${padded.join(' ')}`.trimEnd()
}

/** Runs a program to its end. An error is printed, without a stack, and gives exit code 1. */
export async function run(program: () => Promise<void>): Promise<void> {
  // A closed output (`| head`) is not an error.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  try {
    await program()
  } catch (error) {
    process.stderr.write(`${explain(error as NodeJS.ErrnoException)}\n`)
    process.exitCode = 1
  }
}

function explain({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOSPC') return 'The disk is full: free some space, or choose another --out'
  return code?.startsWith('ERR_PARSE_ARGS') ? `${message}\n--help shows the options.` : message
}
