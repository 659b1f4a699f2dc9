/** The body of a streamed answer, read from an export or a file. */
import type { Context } from 'hono'
import type { Edge } from '../route.ts'
import type { Services } from '../services.ts'

export interface BodySource {
  /** Undefined at the end. */
  read(): Promise<Uint8Array | undefined>
  /** The kernel has these bytes, so their buffer may be reused. */
  recycle?(bytes: Uint8Array): void
  /** Everything is read and the answer has not ended yet: the time to add trailers. */
  ended?(): void
  /** The client has stopped reading. */
  cancel(): void
}

/**
 * Pull only: the socket requests each chunk.
 *
 * All failures are treated the same way: the connection is destroyed before the last byte, so that a partial body
 * never looks complete, and one line is logged. `pull()` throws nothing: the adapter would print the error among the
 * log lines and write it into the body. A client that disconnects is not a failure.
 */
export function streamBody(
  c: Context<Edge>,
  { log }: Pick<Services, 'log'>,
  broken: 'stream.broken' | 'file.broken',
  source: BodySource,
): ReadableStream<Uint8Array> {
  const { outgoing } = c.env
  const facts = c.get('audited')
  const sent: Uint8Array[] = []
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          // The answer has begun and its write buffer is empty: the kernel has all chunks before.
          if (outgoing.headersSent && outgoing.writableLength === 0)
            for (const chunk of sent.splice(0)) source.recycle?.(chunk)
          const chunk = await source.read()
          if (chunk) {
            if (facts) facts.bytes = (facts.bytes ?? 0) + chunk.length
            sent.push(chunk)
            return controller.enqueue(chunk)
          }
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
