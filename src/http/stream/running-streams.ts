/** The streamed exports that this process is sending, for staff to see and to cut. */
import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Encoding } from '../../exports/run/task.ts'

export interface RunningStream {
  /** `stream_` and 16 hexadecimal digits. */
  id: string
  /** `movements`, `entries`, `balance`, the name of a collection ... */
  what: string
  /** Ending of the file: `ndjson`. */
  form: string
  encoding: Encoding
  schemaId: string | undefined
  /** Undefined if it concerns no single folder. */
  folderId: string | undefined
  thirdPartyId: string | undefined
  requestId: string
  /** Epoch milliseconds. */
  since: number
  /** Sent so far, as compressed. */
  bytes: number
}

export class RunningStreams {
  readonly #running = new Map<string, { stream: RunningStream; answer: ServerResponse }>()

  /**
   * Lists a stream until its answer ends.
   * @param answer destroyed when staff cut the stream
   */
  begin(facts: Omit<RunningStream, 'id' | 'bytes'>, answer: ServerResponse): RunningStream {
    const stream = { ...facts, id: `stream_${randomBytes(8).toString('hex')}`, bytes: 0 }
    this.#running.set(stream.id, { stream, answer })
    answer.once('close', () => this.#running.delete(stream.id))
    if (answer.closed) this.#running.delete(stream.id)
    return stream
  }

  /** Oldest first. */
  list(): RunningStream[] {
    return [...this.#running.values()].map(({ stream }) => stream)
  }

  find(id: string): RunningStream | undefined {
    return this.#running.get(id)?.stream
  }

  /** Its client sees a broken transfer. Returns false if it has ended. */
  cut(id: string): boolean {
    const found = this.#running.get(id)
    found?.answer.destroy()
    return found !== undefined
  }
}
