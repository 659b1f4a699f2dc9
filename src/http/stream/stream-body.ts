/** The body of a streamed answer, whatever it comes from: an export or a file. */
import type { Context } from 'hono'
import type { Edge } from '../route.ts'
import type { Services } from '../services.ts'

export interface BodySource {
  /** Undefined at the end. */
  read(): Promise<Uint8Array | undefined>
  /** The kernel has these bytes, so their buffer may be written again. */
  giveBack?(bytes: Uint8Array): void
  /** All is read, and the answer not yet ended: the moment for trailers. */
  ended?(): void
  /** Nobody reads on. */
  cancel(): void
}

/**
 * Pull only: the socket asks for each chunk.
 *
 * One rule for failures: the connection is broken off before the last byte, so that what arrived never looks complete,
 * and the log gets one line. Nothing is thrown from `pull()`: the adapter would print it among the lines of the log, and
 * say it in the body. Where the client has left, nothing has failed.
 */
export function streamBody(
  c: Context<Edge>,
  { log }: Pick<Services, 'log'>,
  broken: 'stream.broken' | 'file.broken',
  source: BodySource,
): ReadableStream<Uint8Array> {
  const { outgoing } = c.env
  let sent: Uint8Array | undefined
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          // The answer has begun and nothing waits to be written: the chunk before is with the kernel.
          if (sent && outgoing.headersSent && outgoing.writableLength === 0) source.giveBack?.(sent)
          sent = await source.read()
          if (sent) return controller.enqueue(sent)
          source.ended?.()
          controller.close()
        } catch (error) {
          if (!outgoing.destroyed) log(broken, { requestId: c.get('requestId'), error })
          outgoing.destroy()
        }
      },
      cancel: () => source.cancel(),
    },
    { highWaterMark: 0 },
  )
}
