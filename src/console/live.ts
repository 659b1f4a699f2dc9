/**
 * Keeps the page that a browser shows up to date, by server-sent events: the browser asks for the page's address again,
 * as an event stream. Each event has the content of `main`, and is sent only if it differs from the previous one.
 * `assets/console.js` changes the parts of the page that differ. Without the script, a reload shows the same.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from 'hono'
import { streamSSE } from 'hono/streaming'
import { limits } from '../config.ts'
import type { ConsoleEdge } from './page.ts'

/** Maximum time in which nothing is sent. Proxies close connections that are silent for longer. */
const quietMsMax = 15_000

/** Time after which a browser connects again, and the longer time if too many pages are open. */
const reconnectMs = 1_000
const fullMs = 15_000

export type Watch = ReturnType<typeof watchPages>

/** @param closing aborts when the process stops, which ends all streams */
export function watchPages(closing: AbortSignal) {
  let viewers = 0
  /**
   * Streams a page. If too many browsers watch, the page stays as it is and says so.
   * @param render returns the current content; if undefined, the stream ends and the browser asks again. It never rejects
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

/** Forbids copies of an answer: Hono lets browsers keep a copy of streams. */
function copiedNowhere(answer: Response): Response {
  answer.headers.set('Cache-Control', 'no-store')
  return answer
}
