/** The streamed exports that this process is sending, for staff to see and to cut. */
import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Encoding } from '../../exports/run/task.ts'
import { whenOver } from '../request-slot.ts'

export interface RunningStream {
  /** `stream_` and 16 hexadecimal digits. */
  id: string
  /** `movements`, `entries`, `balance`, the name of a collection ... */
  what: string
  /** Ending of the file: `ndjson`. */
  form: string
  encoding: Encoding
  schemaId: string | undefined
  /** Undefined if the stream concerns no single folder. */
  folderId: string | undefined
  thirdPartyId: string | undefined
  requestId: string
  /** When the stream began, in epoch milliseconds. */
  since: number
  /** Bytes sent so far, as compressed. */
  bytes: number
  /** Number of items; 0 until the last one is sent. */
  rows: number
}

export class RunningStreams {
  readonly #running = new Map<string, { stream: RunningStream; answer: ServerResponse }>()
  readonly #ended = { rows: 0, bytes: 0 }
  #slowestFirstByteMs: number | undefined

  /**
   * Lists a stream until its answer ends.
   * @param answer destroyed when staff cut the stream
   */
  begin(facts: Omit<RunningStream, 'id' | 'bytes' | 'rows'>, answer: ServerResponse): RunningStream {
    const stream = { ...facts, id: `stream_${randomBytes(8).toString('hex')}`, bytes: 0, rows: 0 }
    this.#running.set(stream.id, { stream, answer })
    whenOver(answer, () => {
      if (!this.#running.delete(stream.id)) return
      this.#ended.rows += stream.rows
      this.#ended.bytes += stream.bytes
    })
    return stream
  }

  /** Counts bytes that go to the socket. */
  sent(stream: RunningStream, bytes: number): void {
    if (stream.bytes === 0)
      this.#slowestFirstByteMs = Math.max(this.#slowestFirstByteMs ?? 0, Date.now() - stream.since)
    stream.bytes += bytes
  }

  /** Rows and bytes of all streams since the process began. */
  totals(): { rows: number; bytes: number } {
    const totals = { ...this.#ended }
    for (const { stream } of this.#running.values()) {
      totals.rows += stream.rows
      totals.bytes += stream.bytes
    }
    return totals
  }

  /**
   * The longest time to the first byte, among streams whose first byte was sent since the last call; undefined if there
   * are none.
   */
  takeSlowestFirstByteMs(): number | undefined {
    const slowest = this.#slowestFirstByteMs
    this.#slowestFirstByteMs = undefined
    return slowest
  }

  /** The running streams, oldest first. */
  list(): RunningStream[] {
    return [...this.#running.values()].map(({ stream }) => stream)
  }

  find(id: string): RunningStream | undefined {
    return this.#running.get(id)?.stream
  }

  /** Breaks off a running stream: its client sees a broken transfer. Returns false if the stream has already ended. */
  cut(id: string): boolean {
    const found = this.#running.get(id)
    found?.answer.destroy()
    return found !== undefined
  }
}
