/**
 * A load balancer as operators have one: it asks each process for `/readyz`, and sends requests in turn to those that are
 * ready. A process is taken out before it is stopped.
 */
import { type ClientRequest, createServer, get, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../until.ts'

export type Balancer = Awaited<ReturnType<typeof startBalancer>>

interface Target {
  isReady: boolean
  running: number
}

const everyMs = 100

export async function startBalancer() {
  const targets = new Map<string, Target>()
  const failures: string[] = []
  const answered = new Map<string, number>()
  let turn = 0
  const closing = new AbortController()
  const server = createServer((incoming, answer) => {
    const ready = [...targets].filter(([, { isReady }]) => isReady)
    turn += 1
    const [url, target] = ready[turn % ready.length] ?? []
    if (!url || !target) {
      failures.push(`no process is ready for ${incoming.url}`)
      answer.writeHead(502).end()
      return
    }
    target.running += 1
    answer.once('close', () => {
      target.running -= 1
    })
    const { method, headers } = incoming
    const onward: ClientRequest = request(url + incoming.url, { method, headers }, (response) => {
      answered.set(url, (answered.get(url) ?? 0) + 1)
      answer.writeHead(response.statusCode!, response.headers)
      response.pipe(answer, { end: false })
      response.on('end', () => {
        answer.addTrailers(response.trailers)
        answer.end()
      })
      response.on('close', () => {
        if (!response.complete) answer.destroy()
      })
    })
    onward.on('error', (error) => {
      failures.push(`${url}: ${error.message}`)
      answer.destroy()
    })
    incoming.pipe(onward)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const asking = (async () => {
    while (!closing.signal.aborted) {
      for (const [url, target] of targets) target.isReady = await isReady(url)
      await delay(everyMs, undefined, { signal: closing.signal }).catch(() => {})
    }
  })()
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Requests that found no ready process, or whose connection to it broke. */
    failures,
    /** How many answers each process gave. */
    answered,
    /** Waits until the process is ready, and sends it requests from now on. */
    add: async (url: string) => {
      await until(() => isReady(url))
      targets.set(url, { isReady: true, running: 0 })
    },
    /** Sends the process no more requests, and waits for its running answers. */
    takeOut: async (url: string) => {
      const target = targets.get(url)!
      targets.delete(url)
      await until(() => target.running === 0)
    },
    close: async () => {
      closing.abort()
      await asking
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

function isReady(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    get(`${url}/readyz`, (answer) => resolve(answer.resume().statusCode === 200)).on('error', () =>
      resolve(false),
    )
  })
}
