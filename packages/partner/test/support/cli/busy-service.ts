/** A server that makes a command wait once, and then refuses it. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** @returns the environment of a caller, and the number of requests so far */
export async function startBusyService(message: string, waitSeconds: number) {
  const busy = { asked: 0 }
  const server = createServer((_, answer) => {
    busy.asked += 1
    const headers = { 'Content-Type': 'application/json', 'Retry-After': String(waitSeconds) }
    const error = { code: 'ERR-TOO-MANY-REQUEST', message, details: {} }
    answer.writeHead(busy.asked === 1 ? 429 : 400, headers).end(JSON.stringify({ error }))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = { GRANDLIVRE_URL: url, GRANDLIVRE_TOKEN: 'glv_api_1', GRANDLIVRE_SECRET: 'glv_secret_1' }
  return Object.assign(busy, { env, close: () => void server.close() })
}
