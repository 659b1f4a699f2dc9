/**
 * A page that shows the balances of a fiscal year while its movements arrive. A browser must not have the token and the
 * secret, so this server has them and gives the page one year, nothing else. A real one also checks who asks.
 *
 *   GRANDLIVRE_URL=... GRANDLIVRE_TOKEN=... GRANDLIVRE_SECRET=... npx node examples/browser/server.ts 1115
 */
import { readFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Grandlivre } from 'grandlivre'

const {
  GRANDLIVRE_URL: baseUrl = '',
  GRANDLIVRE_TOKEN: token = '',
  GRANDLIVRE_SECRET: secret = '',
} = process.env
const ledger = new Grandlivre({ baseUrl, token, secret })
const year = { exercice: process.argv[2] ?? '' }

const routes: Record<string, (response: ServerResponse) => Promise<unknown>> = {
  '/': (response) => sendFile(response, 'page.html', 'text/html; charset=utf-8'),
  '/balances.js': (response) => sendFile(response, 'balances.js', 'text/javascript'),
  '/blocks': async (response) => {
    const { blocks, cursor } = await ledger.blocks(year)
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify({ blocks, cursor }))
  },
  '/movements': async (response) => {
    const leaves = new AbortController()
    response.on('close', () => leaves.abort())
    const movements = ledger.movements(year, { signal: leaves.signal })
    const chunks = movements.chunks()
    // The cursor is known with the first lines.
    const first = await chunks.next()
    response.setHeader('Content-Type', 'application/x-ndjson')
    response.setHeader('X-Ledger-Cursor', movements.progress.cursor ?? '')
    if (!first.done) response.write(first.value)
    // An error breaks the connection, so that the page notices.
    await pipeline(Readable.from(chunks), response)
  },
}

async function sendFile(response: ServerResponse, name: string, type: string): Promise<void> {
  response.setHeader('Content-Type', type)
  response.end(await readFile(join(import.meta.dirname, name)))
}

const server = createServer((request, response) => {
  response.setHeader('Content-Security-Policy', "default-src 'none'; script-src 'self'; connect-src 'self'")
  response.setHeader('Cache-Control', 'no-store')
  const route = routes[request.url ?? '']
  if (route === undefined || request.method !== 'GET') return response.writeHead(404).end()
  route(response).catch((error: Error) => {
    if (request.destroyed) return
    console.warn(error.message)
    if (response.headersSent) response.destroy()
    else response.writeHead(502).end(error.message)
  })
})

server.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  const address = server.address()
  if (address && typeof address === 'object') console.log(`http://127.0.0.1:${address.port}`)
})
