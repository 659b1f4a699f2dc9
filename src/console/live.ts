/**
 * Keeps the page that a browser shows up to date, by server-sent events: the same address, asked for as an event
 * stream. Each event is the content of `main`, sent only where it differs from the last; `assets/console.js` changes
 * what differs. Without it, a reload shows the same.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from 'hono'
import { streamSSE } from 'hono/streaming'
import { limits } from '../config.ts'
import type { ConsoleEdge } from './page.ts'

/** Proxies close connections on which nothing is sent for longer. */
const quietMsMax = 15_000

/** A browser connects again after this time; later if too many pages are open. */
const reconnectMs = 1_000
const fullMs = 15_000

export type Watch = ReturnType<typeof watchPages>

/** @param closing ends all streams: the process stops */
export function watchPages(closing: AbortSignal) {
  let viewers = 0
  /**
   * @param render the content now; undefined ends the stream, and the browser asks again. Never rejects
   *   If too many browsers watch, the page stays as it is and says so
   */
  return (c: Context<ConsoleEdge>, render: () => Promise<string | undefined>, everyMs: number): Response => {
    if (viewers >= limits.consoleViewersMax) {
      const data = 'Not kept up to date: too many pages are open. Close some, or reload this one.'
      return copiedNowhere(streamSSE(c, (stream) => stream.writeSSE({ event: 'full', data, retry: fullMs })))
    }
    viewers += 1
    const left = new AbortController()
    const ended = AbortSignal.any([closing, left.signal])
    c.env.outgoing.once('close', () => left.abort())
    // The browser may have left while its session was read.
    if (c.env.outgoing.closed) left.abort()
    const answer = streamSSE(c, async (stream) => {
      try {
        let sent: string | undefined
        let sentAt = 0
        for (; !ended.aborted; await delay(everyMs, undefined, { signal: ended }).catch(() => {})) {
          const content = await render()
          if (content === undefined) return
          const isQuiet = performance.now() - sentAt > quietMsMax
          if (content === sent && !isQuiet) continue
          if (content === sent) await stream.write(': still here\n\n')
          else await stream.writeSSE({ event: 'content', data: content, retry: reconnectMs })
          ;[sent, sentAt] = [content, performance.now()]
        }
      } finally {
        viewers -= 1
      }
    })
    return copiedNowhere(answer)
  }
}

/** Hono lets browsers keep a copy of streams. */
function copiedNowhere(answer: Response): Response {
  answer.headers.set('Cache-Control', 'no-store')
  return answer
}
