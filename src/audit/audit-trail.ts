/**
 * Collects the rows of this process's requests and appends them together, at most half a second after the first one
 * arrived: a transaction for each row would cost each small request a commit.
 *
 * While the database is unreachable, the rows wait. Beyond `limits.auditRowsMax` they are only counted, and a row with
 * the count follows when the database is back: no row is lost silently. If the response to a batch was lost, the batch
 * is sent again under the same number, and the database appends it only once. If the database refuses a batch for its
 * content, each of its rows is sent alone.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Pool } from 'pg'
import { limits } from '../config.ts'
import type { Log } from '../log.ts'
import { appendRequests, type Batch, canonicalJson } from './audit.sql.ts'

/** Most rows per statement. */
const batchRowsMax = 2_500
/** Milliseconds before a batch is sent again. */
const retryMs = 1_000
/** Interval in milliseconds between log lines that state why rows wait. */
const reportMs = 10_000

interface Lost {
  rows: number
  from: Date
  to: Date
}

export class AuditTrail {
  readonly #database: Pool
  readonly #log: Log
  readonly #sender = randomUUID()
  readonly #closing = new AbortController()
  #rows: AnsweredRequest[] = []
  #lost: Lost | undefined
  /** The batch that was sent and is not known to be appended. */
  #sent: Batch | undefined
  /** The lost rows that the last row of `#sent` reports. */
  #reported: Lost | undefined
  #batches = 0
  /** Rows of a batch that was refused for its content. They are sent one by one, because only some of them are bad. */
  #apart: object[] = []
  #appending: Promise<void> | undefined
  /** When rows began to wait, or when rows were last appended. */
  #advancedAt = 0
  #reportedAt = Number.NEGATIVE_INFINITY

  /** @param database connects as the service role */
  constructor(database: Pool, log: Log) {
    this.#database = database
    this.#log = log
  }

  /** Number of rows that are not known to be appended. */
  get waiting(): number {
    return this.#waitingRows + (this.#lost ? 1 : 0)
  }

  /** Seconds for which rows have waited without the database appending any; 0 if no row waits. */
  get stalledSeconds(): number {
    return this.waiting === 0 ? 0 : (performance.now() - this.#advancedAt) / 1_000
  }

  get #waitingRows(): number {
    return this.#rows.length + this.#apart.length + (this.#sent?.rows.length ?? 0)
  }

  record(request: AnsweredRequest): void {
    if (this.#rows.length < limits.auditRowsMax) this.#rows.push(request)
    else this.#lose(1, request.at)
    this.#appending ??= this.#appendAll()
  }

  /** Appends the waiting rows, unless the database refuses them now. Call it before the pool ends. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#appending
    if (this.#sent) this.#sent.rows = this.#takeBackReport(this.#sent.rows)
    const rows = this.#waitingRows + (this.#lost?.rows ?? 0)
    if (rows > 0) this.#log('audit.lost', { rows })
  }

  async #appendAll(): Promise<void> {
    this.#advancedAt = performance.now()
    while (this.waiting > 0) {
      if (this.#apart.length === 0) await this.#pause(limits.auditAppendMs)
      if (await this.#appendBatch()) continue
      if (this.#closing.signal.aborted) break
      await this.#pause(retryMs)
    }
    this.#appending = undefined
  }

  async #appendBatch(): Promise<boolean> {
    this.#sent ??= this.#nextBatch()
    const { rows } = this.#sent
    try {
      await appendRequests(this.#database, this.#sent)
      this.#advancedAt = performance.now()
      this.#sent = undefined
      return true
    } catch (error) {
      this.#report(error)
      if (!isRefusedForItsContent(error)) return false
      // Sent again, the batch would be refused forever, and all later rows would wait.
      this.#sent = undefined
      const requests = this.#takeBackReport(rows)
      if (rows.length === 1 && requests.length === 1) this.#lose(1, (rows[0] as AnsweredRequest).at)
      else this.#apart = requests
      return requests.length > 0
    }
  }

  /**
   * Takes the report of lost rows back from a batch: their count is kept until the report is appended.
   * @returns the rows of requests
   */
  #takeBackReport(rows: object[]): object[] {
    if (!this.#reported) return rows
    const { rows: lost, from, to } = this.#reported
    this.#reported = undefined
    this.#lost = { rows: lost + (this.#lost?.rows ?? 0), from, to: this.#lost?.to ?? to }
    return rows.slice(0, -1)
  }

  #nextBatch(): Batch {
    this.#batches += 1
    const isApart = this.#apart.length > 0
    const rows: object[] = isApart ? this.#apart.splice(0, 1) : this.#rows.splice(0, batchRowsMax)
    this.#reported = !isApart && this.#rows.length === 0 ? this.#lost : undefined
    if (this.#reported) {
      rows.push(columnsOfLost(this.#reported))
      this.#lost = undefined
    }
    return { sender: this.#sender, number: this.#batches, rows }
  }

  #lose(rows: number, at: Date): void {
    this.#lost = { rows: (this.#lost?.rows ?? 0) + rows, from: this.#lost?.from ?? at, to: at }
  }

  #report(error: unknown): void {
    if (performance.now() - this.#reportedAt < reportMs) return
    this.#reportedAt = performance.now()
    this.#log('audit.waiting', { rows: this.waiting, error })
  }

  /** Waits until the time is over or the trail is closed. */
  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#closing.signal }).catch(() => {})
  }
}

/** Whether the error has SQLSTATE class 22 (data) or 23 (constraints). Other errors may go away. */
function isRefusedForItsContent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^2[23]...$/.test(String(error.code))
}

function columnsOfLost({ rows, from, to }: Lost): object {
  const details = canonicalJson({ rows, from: from.toISOString(), to: to.toISOString() })
  return { at: to, act: 'audit lost', details, outcome: 'failed' }
}

/** Facts about a request, noted while it is answered. A request without them gets no row. Ids are decimal digits. */
export interface AnswerFacts {
  thirdPartyId: string | null
  tokenId: string | null
  schemaId: string
  /** `/api/v1/mad/movements` */
  route: string
  /** What the request asked for, after validation. Contains no secrets and no content of books. */
  selection: object
  rows?: number
  bytes?: number
  sha256?: string | undefined
  cursor?: string | undefined
}

/** How the response to a request ended. */
interface AnswerEnd {
  at: Date
  /** `GET` */
  method: string
  requestId: string
  folderId: string | undefined
  /** Undefined if the client left before there was a response. */
  status: number | undefined
  /** Whether the last byte of the response was handed to the network. */
  isWhole: boolean
  /** Code of the error, if there was one. */
  code: string | undefined
}

export type AnsweredRequest = ReturnType<typeof answeredRequest>

/**
 * Makes the row of a request that was answered or whose response was cut off; its keys are the names of the columns.
 * Pure.
 */
export function answeredRequest(facts: AnswerFacts, end: AnswerEnd) {
  const outcome = outcomeOf(end)
  // If the response was not sent whole, the counts of the export do not prove what arrived.
  const { rows, sha256 } = outcome === 'sent' ? facts : {}
  return {
    /** When the response ended. */
    at: end.at,
    third_party_id: facts.thirdPartyId,
    token_id: facts.tokenId,
    act: `${end.method} ${facts.route}`,
    schema_id: facts.schemaId,
    folder_id: end.folderId,
    request_id: end.requestId,
    details: canonicalJson(facts.selection),
    /** Items of the response, or movements of the file. */
    rows,
    /** Bytes of a streamed body that were sent. */
    bytes: facts.bytes,
    /** SHA-256 of the content before compression, hexadecimal. */
    sha256,
    /** Names the state of the ledger that the response shows. */
    cursor: facts.cursor,
    outcome,
    code: end.code,
  }
}

/** `unchanged` is a 304, `refused` a 4xx, `failed` a 5xx. `cut` is a response that did not leave whole. */
function outcomeOf({ status, isWhole }: AnswerEnd): 'sent' | 'unchanged' | 'cut' | 'refused' | 'failed' {
  if (status === undefined || !isWhole) return 'cut'
  if (status === 304) return 'unchanged'
  if (status < 400) return 'sent'
  return status < 500 ? 'refused' : 'failed'
}
