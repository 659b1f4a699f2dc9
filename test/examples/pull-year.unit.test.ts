/** How the example of a partner treats answers that are wrong, break off, or limit its rate. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, globalAgent, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { afterAll, afterEach, expect, test } from 'vitest'
import { partnerFrom } from '../../examples/partner.ts'
import { pull, readBack } from '../../examples/pull-year.ts'

const folder = mkdtempSync(join(tmpdir(), 'grandlivre-pull-'))
const file = join(folder, 'movements.ndjson')
afterAll(() => rmSync(folder, { recursive: true }))

const movement = (id: number, text: string, credit: string, debit: string) =>
  `{"producerId":"${id}","description":"${text}","value":{"credit":${credit},"debit":${debit},"amount":0}}\n`
const lines = [
  movement(1, 'plain', '0', '12.5'),
  movement(2, String.raw`quotes \"value\":{\"credit\":1,\"debit\":2}, and a line\nbreak`, '12.05', '0'),
  movement(3, 'separator \u2028 in a line', '0.45', '0'),
]
const body = lines.join('')

let close: (() => void) | undefined
afterEach(() => close?.())

/** A service that gives any answer, a wrong one too. */
async function serve(answer: (outgoing: ServerResponse, incoming: IncomingMessage) => void) {
  close?.()
  const server = createServer((incoming, outgoing) => answer(outgoing, incoming))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: 't', secret: 's' }
}

const proof = (text: string) => ({
  'X-Row-Count': String(text.split('\n').length - 1),
  'X-Content-SHA256': createHash('sha256').update(text).digest('hex'),
})

function send(outgoing: ServerResponse, text: string, trailers: Record<string, string> = proof(text)): void {
  outgoing.writeHead(200, { ETag: '"e"', Trailer: Object.keys(trailers).join(', ') })
  outgoing.write(text)
  outgoing.addTrailers(trailers)
  outgoing.end()
}

const order = { path: '/movements?version=1.0.0', file, label: 'Movements' }

test('a body that matches its trailers is accepted, and replaces a longer file', async () => {
  writeFileSync(file, body.repeat(2))
  const partner = await serve((outgoing) => send(outgoing, body))
  expect(await pull(partner, order)).toMatchObject({
    etag: '"e"',
    wireBytes: Buffer.byteLength(body),
    connections: 1,
  })
  expect(readFileSync(file, 'utf8')).toBe(body)
})

test('a compressed body is checked against its trailers after decompression', async () => {
  const compressed = zstdCompressSync(body)
  const partner = await serve((outgoing, { headers }) => {
    expect(headers['accept-encoding']).toBe('zstd')
    outgoing.writeHead(200, { 'Content-Encoding': 'zstd', Trailer: 'X-Row-Count, X-Content-SHA256' })
    outgoing.write(compressed)
    outgoing.addTrailers(proof(body))
    outgoing.end()
  })
  expect(await pull(partner, { ...order, encoding: 'zstd' })).toMatchObject({ wireBytes: compressed.length })
  expect(readFileSync(file, 'utf8')).toBe(body)
})

test.each([
  ['bytes', { ...proof(body), 'X-Content-SHA256': '0'.repeat(64) }, 'the body has the SHA-256'],
  ['rows', { ...proof(body), 'X-Row-Count': '4' }, '3 movements arrived, and the trailer says 4'],
  ['trailers', { 'X-Row-Count': '3' }, 'its trailer says undefined'],
])('a body is refused if its %s are wrong or missing', async (_, trailers, complaint) => {
  const partner = await serve((outgoing) => send(outgoing, body, trailers))
  await expect(pull(partner, order)).rejects.toThrow(complaint)
})

test.each([
  ['the service', {}],
  ['the partner', { cutAtBytes: Buffer.byteLength(lines[0]! + lines[1]!) + 5 }],
])(
  'if %s breaks off, the rest is requested after the last whole line, of the same ledger',
  async (_, options) => {
    const asked: (string | undefined)[][] = []
    const partner = await serve((outgoing, { url, headers }) => {
      asked.push([url, headers['if-match']])
      if (asked.length === 2) return send(outgoing, lines[2]!)
      outgoing.writeHead(200, { ETag: '"e"' })
      outgoing.write(lines[0]! + lines[1]! + lines[2]!.slice(0, 9), () => outgoing.destroy())
    })
    expect(await pull(partner, { ...order, ...options })).toMatchObject({ connections: 2 })
    expect(asked).toEqual([
      [order.path, undefined],
      [`${order.path}&after=2`, '"e"'],
    ])
    expect(readFileSync(file, 'utf8')).toBe(body)
  },
)

test('a transfer that breaks off before its first line starts again, ten times in all', async () => {
  let asked = 0
  const partner = await serve((outgoing, { url }) => {
    asked += 1
    expect(url).toBe(order.path)
    outgoing.writeHead(200, { ETag: '"e"' })
    outgoing.write(body.slice(0, 9), () => outgoing.destroy())
  })
  await expect(pull(partner, order)).rejects.toThrow('aborted')
  expect(asked).toBe(10)
})

test('a ledger that changed between two connections is refused with the error of the service', async () => {
  const partner = await serve((outgoing, { headers }) => {
    if (headers['if-match'] === undefined) return send(outgoing, body)
    outgoing.writeHead(412).end('{"error":{"code":"ERR-PRECONDITION-FAILED","message":"Begin anew"}}')
  })
  await expect(pull(partner, { ...order, cutAtBytes: 200 })).rejects.toThrow(
    '412 ERR-PRECONDITION-FAILED: Begin anew',
  )
})

test('a refused request shows every problem that the service found', async () => {
  const issues =
    '[{"parameter":"idExercice","message":"must be an id"},{"parameter":"x","message":"is unknown"}]'
  const partner = await serve((outgoing) =>
    outgoing
      .writeHead(400)
      .end(`{"error":{"code":"ERR-VALIDATION","message":"See issues","details":{"issues":${issues}}}}`),
  )
  await expect(pull(partner, order)).rejects.toThrow(
    /400 ERR-VALIDATION: See issues\n {2}idExercice must be an id\n {2}x is unknown$/,
  )
})

test('a dropped transfer leaves no open connection, even if the whole answer had arrived', async () => {
  // More than one chunk: the second arrives while the first is written to the file.
  const many = Array.from({ length: 100 }, (_, id) => movement(id, 'x'.repeat(900), '0', '0'))
  const whole = many.join('')
  const partner = await serve((outgoing, { url }) => {
    const after = /after=(\d+)/.exec(url!)?.[1] ?? -1
    send(outgoing, many.slice(Number(after) + 1).join(''))
  })
  const { port } = new URL(partner.url)
  for (let time = 0; time < 20; time += 1) {
    await pull(partner, { ...order, cutAtBytes: whole.length / 2 })
    expect(readFileSync(file, 'utf8')).toBe(whole)
    // Node also keeps an idle one for the next request, and closes it after seconds.
    const inUse = Object.entries(globalAgent.sockets).flatMap(([name, of]) =>
      name.includes(`:${port}:`) ? (of ?? []) : [],
    )
    expect(inUse.filter((socket) => !socket.destroyed)).toEqual([])
  }
})

test('a file is read back line by line, its sums to the cent', async () => {
  await pull(await serve((outgoing) => send(outgoing, body)), order)
  const { 'X-Content-SHA256': sha256 } = proof(body)
  const bytes = Buffer.byteLength(body)
  expect(await readBack(file)).toEqual({ bytes, rows: 3, sha256, debit: 1250, credit: 1250 })
  writeFileSync(file, body.slice(0, -1))
  await expect(readBack(file)).rejects.toThrow('ends in the middle of a line')
  writeFileSync(file, `${body}{"producerId":"4"}\n`)
  await expect(readBack(file)).rejects.toThrow(`Line 4 of ${file} is not a movement`)
})

test('after 429 the partner asks again when Retry-After has passed', async () => {
  let asked = 0
  const partner = await serve((outgoing) => {
    asked += 1
    if (asked > 1) return send(outgoing, body)
    outgoing.writeHead(429, { 'Retry-After': '1' }).end('{"error":{"code":"ERR-TOO-MANY-REQUEST"}}')
  })
  expect(await pull(partner, order)).toMatchObject({ connections: 1 })
  expect(asked).toBe(2)
})

test('address, token and secret all come from the environment', () => {
  const env = { GRANDLIVRE_URL: 'https://ledger.example.com/', GRANDLIVRE_TOKEN: 't', GRANDLIVRE_SECRET: 's' }
  expect(partnerFrom(env)).toEqual({ url: 'https://ledger.example.com', token: 't', secret: 's' })
  for (const name of Object.keys(env)) expect(() => partnerFrom({ ...env, [name]: '' })).toThrow(name)
})
