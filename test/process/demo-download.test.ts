import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, globalAgent, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import { breakOff, download, RowCounter } from '../../src/demo/download.ts'
import { readBack } from '../../src/demo/read-back.ts'

const folder = mkdtempSync(join(tmpdir(), 'grandlivre-demo-'))
const file = join(folder, 'movements')
afterAll(() => rmSync(folder, { recursive: true }))

const movement = (id: number, text: string, credit: string, debit: string) =>
  `{"producerId":"${id}","description":"${text}","value":{"credit":${credit},"debit":${debit},"amount":0},` +
  '"lettering":{"state":"none","value":null}}\n'
const body = [
  movement(1, 'plain', '0', '12.5'),
  movement(
    2,
    String.raw`quotes \"value\":{\"credit\":1,\"debit\":2, \"lettering\":{\"state\":`,
    '12.05',
    '0',
  ),
  movement(3, 'separator \u2028 in a line', '0.45', '0'),
].join('')
const sha256 = createHash('sha256').update(body).digest('hex')

let close: (() => void) | undefined
afterEach(() => close?.())

/** A service that may lie. */
async function serve(answer: (outgoing: ServerResponse) => void) {
  const server = createServer((_, outgoing) => answer(outgoing))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: 't', secret: 's' }
}

function send(outgoing: ServerResponse, trailers: Record<string, string>): void {
  outgoing.writeHead(200, { ETag: '"e"', Trailer: Object.keys(trailers).join(', ') })
  outgoing.write(body)
  outgoing.addTrailers(trailers)
  outgoing.end()
}

const order = { path: '/', file, onProgress: () => {} }

test('a download that agrees with its trailers is taken', async () => {
  const partner = await serve((outgoing) =>
    send(outgoing, { 'X-Row-Count': '3', 'X-Content-SHA256': sha256 }),
  )
  expect(await download(partner, order)).toMatchObject({ rows: 3, sha256, etag: '"e"' })
  expect(readFileSync(file, 'utf8')).toBe(body)
})

test('movements are counted wherever the chunks are cut', () => {
  const bytes = Buffer.from(body)
  for (let pieceBytes = 1; pieceBytes <= bytes.length; pieceBytes += 1) {
    const counter = new RowCounter()
    for (let at = 0; at < bytes.length; at += pieceBytes) counter.add(bytes.subarray(at, at + pieceBytes))
    expect(counter.rows, `in pieces of ${pieceBytes}`).toBe(3)
  }
})

test('a download is refused where bytes, rows or trailers are missing', async () => {
  const liesOf = (trailers: Record<string, string>) => async () =>
    download(await serve((outgoing) => send(outgoing, trailers)), order).finally(() => close?.())
  await expect(liesOf({ 'X-Row-Count': '3', 'X-Content-SHA256': '0'.repeat(64) })()).rejects.toThrow(
    'SHA-256',
  )
  await expect(liesOf({ 'X-Row-Count': '4', 'X-Content-SHA256': sha256 })()).rejects.toThrow(
    '3 movements arrived',
  )
  await expect(liesOf({ 'X-Row-Count': '3' })()).rejects.toThrow('its trailer says undefined')
})

test('a transfer that breaks off is refused', async () => {
  const partner = await serve((outgoing) => {
    outgoing.writeHead(200)
    outgoing.write(body, () => outgoing.destroy())
  })
  await expect(download(partner, order)).rejects.toThrow('aborted')
})

test('what a broken line left are whole movements, and the last of them is known', async () => {
  const partner = await serve((outgoing) => send(outgoing, {}))
  const [first, second] = body.split('\n')
  const { lastMovement } = await breakOff(partner, order, Buffer.byteLength(`${first}\n${second}\n`) + 5)
  expect(lastMovement).toBe('2')
  expect(readFileSync(file, 'utf8')).toBe(`${first}\n${second}\n`)
})

test('a line that drops leaves no connection, even where all of the answer had come', async () => {
  // More than one piece of the socket: the second comes while the first is written to the file.
  const lines = Array.from({ length: 100 }, (_, id) => movement(id, 'x'.repeat(900), '0', '0')).join('')
  const partner = await serve((outgoing) => outgoing.end(lines))
  for (let time = 0; time < 20; time += 1) await breakOff(partner, order, lines.length / 2)
  const sockets = Object.values(globalAgent.sockets).flat()
  expect(sockets.filter((socket) => !socket?.destroyed)).toEqual([])
})

test('a file is read back line by line, its sums to the cent', async () => {
  await download(
    await serve((outgoing) => send(outgoing, { 'X-Row-Count': '3', 'X-Content-SHA256': sha256 })),
    order,
  )
  expect(await readBack(file)).toEqual({ rows: 3, sha256, debit: 1250n, credit: 1250n })
})

test('a partner who asked too often comes back when it is told to', async () => {
  let asked = 0
  const partner = await serve((outgoing) => {
    asked += 1
    if (asked > 1) return send(outgoing, { 'X-Row-Count': '3', 'X-Content-SHA256': sha256 })
    outgoing.writeHead(429, { 'Retry-After': '1' }).end('{"error":{"code":"ERR-TOO-MANY-REQUEST"}}')
  })
  expect(await download(partner, order)).toMatchObject({ rows: 3 })
  expect(asked).toBe(2)
})
