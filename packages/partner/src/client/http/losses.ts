/** Reads on where an answer is lost on its way, as long as that brings something. */
import { clientError, GrandlivreError } from '../errors.ts'
import type { Requests } from '../requests.ts'
import { isLost } from './connection.ts'

/**
 * What a reader gives out over as many connections as it needs.
 * @throws {GrandlivreError} CONNECTION-LOST once attempts in a row were in vain; errors of the library as they are
 */
export async function* throughLosses<Part>(
  requests: Requests,
  reader: {
    /** What one more connection brings. Returns if that was all, and throws a loss if something is still to come. */
    connection(): AsyncGenerator<Part, void, undefined>
    /** Grows as long as connections bring something. */
    reached(): number
    /** What to say, `The changes stopped coming`. */
    lost(): string
  },
  signal: AbortSignal | undefined,
): AsyncGenerator<Part, void, undefined> {
  for (let attempt = 0; ; ) {
    const before = reader.reached()
    try {
      return yield* reader.connection()
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof GrandlivreError) throw error
      attempt = reader.reached() > before ? 1 : attempt + 1
      const { message } = error as Error
      if (!isLost(error) || attempt >= requests.attemptsMax)
        throw clientError('CONNECTION-LOST', `${reader.lost()}: ${message}`, { cause: error })
      await requests.pause(message, attempt, signal)
    }
  }
}
