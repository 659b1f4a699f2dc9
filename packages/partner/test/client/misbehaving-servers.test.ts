/** Servers and proxies that send too much, too little at a time, or JSON of another spelling. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../../../../test/support/until.ts'
import { Grandlivre, type GrandlivreOptions } from '../../src/client/grandlivre.ts'

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

/** A client of a server that answers with `respond`. */
async function clientOf(
  respond: (answer: ServerResponse, request: IncomingMessage) => void,
  options: Partial<GrandlivreOptions> = {},
): Promise<Grandlivre> {
  const server = createServer((request, answer) => respond(answer, request))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const ledger = new Grandlivre({ baseUrl, token: 't', secret: 's', pacing: { random: () => 0 }, ...options })
  closing.push(() => {
    ledger.close()
    server.close()
    server.closeAllConnections()
  })
  return ledger
}

const json = { 'Content-Type': 'application/json' }
const ndjson = { 'Content-Type': 'application/x-ndjson' }

describe('JSON that is longer than the limit', () => {
  /** 17 MB of JSON. */
  const long = Buffer.from(`["${'x'.repeat(17_000_000)}"]`)
  const bodies: [string, Record<string, string>, Buffer][] = [
    ['with its length', { 'Content-Length': String(long.length) }, long],
    ['in chunks', { 'Transfer-Encoding': 'chunked' }, long],
    ['compressed by gzip to a few KB', { 'Content-Encoding': 'gzip' }, gzipSync(long)],
    ['compressed by zstd to a few KB', { 'Content-Encoding': 'zstd' }, zstdCompressSync(long)],
  ]
  test.each(bodies)('is refused if it is sent %s', async (_, headers, body) => {
    let asked = 0
    const ledger = await clientOf((answer) => {
      asked += 1
      answer.writeHead(200, { ...json, ...headers }).end(body)
    })
    const remedy = expect.stringContaining('pass the client a larger `wholeBytesMax`')
    const refused = { code: 'ANSWER-TOO-LONG', status: 200, remedy }
    await expect(ledger.get('/mad/accounts')).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(/^GET \/mad\/accounts was answered with more than 16 MB.*wholeBytesMax/),
    })
    expect(asked).toBe(1)
    const post = ledger.post('/webhook', { body: { postUrl: null, onEvents: [], accountingFolderId: [] } })
    await expect(post).rejects.toMatchObject({
      ...refused,
      message: expect.stringMatching(/^POST \/webhook /),
    })
  })

  test('makes the client close the connection if it never ends', async () => {
    let isClosed = false
    const ledger = await clientOf((answer) => {
      answer.writeHead(200, json).on('close', () => {
        isClosed = true
      })
      const more = () => {
        while (!isClosed && answer.write(Buffer.alloc(1_000_000, 32)));
      }
      answer.on('drain', more)
      more()
    })
    await expect(ledger.get('/mad/accounts')).rejects.toMatchObject({ code: 'ANSWER-TOO-LONG' })
    await until(() => isClosed)
  })

  test('is accepted with a higher limit; shorter JSON is refused with a lower limit', async () => {
    const respond = (answer: ServerResponse) => void answer.writeHead(200, json).end(long)
    const ledger = await clientOf(respond, { wholeBytesMax: 20_000_000 })
    expect(String(await ledger.get('/mad/accounts'))).toHaveLength(17_000_000)
    const strict = await clientOf(respond, { wholeBytesMax: 1_000 })
    await expect(strict.get('/mad/accounts')).rejects.toThrow('more than 0.001 MB')
  })
})

test('changes that do not begin with ranges leave no connection open', async () => {
  let isClosed = false
  const ledger = await clientOf((answer) => {
    answer.on('close', () => {
      isClosed = true
    })
    answer.writeHead(200, ndjson).write(`{"no":"ranges"}\n${' '.repeat(1_000_000)}`)
  })
  const changes = ledger.changes('1.1.a.b', { exercice: '1' })
  await expect(changes).rejects.toMatchObject({ code: 'UNEXPECTED-ANSWER' })
  await until(() => isClosed)
})

describe('a slow transfer', () => {
  /** Sends one byte every 5 ms. */
  const drip = (headers: Record<string, string>) => (answer: ServerResponse) => {
    answer.writeHead(200, headers)
    const timer = setInterval(() => answer.write(' '), 5)
    answer.on('close', () => clearInterval(timer))
  }
  const slow = expect.stringContaining('Less than 1 KB arrived in 0.3 seconds')
  const selection = { exercice: '1' }
  const read = async (all: AsyncIterable<unknown>) => {
    for await (const _ of all);
  }
  const ways: [string, Record<string, string>, (ledger: Grandlivre) => Promise<unknown>, string][] = [
    ['of JSON', json, (ledger) => ledger.get('/mad/accounts'), 'CONNECTION-FAILED'],
    ['of movements', ndjson, (ledger) => read(ledger.movements(selection)), 'CONNECTION-LOST'],
    ['of changes', ndjson, (ledger) => ledger.changes('1', selection), 'CONNECTION-LOST'],
  ]
  test.each(ways)(
    '%s is given up and requested again if less than 1 KB arrives in time',
    async (_, headers, call, code) => {
      let asked = 0
      const ledger = await clientOf(
        (answer) => {
          asked += 1
          drip(headers)(answer)
        },
        { stallMs: 300, attemptsMax: 2 },
      )
      await expect(call(ledger)).rejects.toMatchObject({ code, message: slow })
      expect(asked).toBe(2)
    },
  )

  test('is read to its end if more arrives in time', async () => {
    const ledger = await clientOf(
      (answer) => {
        answer.writeHead(200, json).write('[')
        let left = 30
        const timer = setInterval(() => {
          left -= 1
          if (left > 0) return void answer.write(' '.repeat(400))
          clearInterval(timer)
          answer.end(']')
        }, 20)
      },
      { stallMs: 300, attemptsMax: 1 },
    )
    expect(await ledger.get('/mad/accounts')).toEqual([])
  })
})

describe('the status of an export that a proxy has rewritten', () => {
  const digest = '0'.repeat(64)
  const done = {
    ...{ id: 'export_1', status: 'DONE', url: 'http://127.0.0.1/file', size: 1, fileSha256: digest },
    ...{ contentSize: 1, sha256: digest, rows: 1, notes: { '"totals":{"debit":1,"credit":2}': 1 } },
  }
  const statusWith = (totals: string) =>
    JSON.stringify({ ...done, totals: 0 }).replace('"totals":0', `"totals":${totals}`)
  const spellings: [string, string?, string?][] = [
    ['{"debit":12794.25,"credit":43244177.9}', '12794.25', '43244177.9'],
    ['{ "credit" : 43244177.90 ,\n "debit" : 12794.250 }', '12794.25', '43244177.9'],
    ['{"debit":100.0,"credit":1e2}', '100', '100'],
    ['{"debit":1.27942500E+4,"credit":5E-1}', '12794.25', '0.5'],
    ['{"debit":-0.00,"credit":-12e-3}', '0', '-0.012'],
    [
      '{"debit":90071992547409931234567.01,"credit":90071992547409931234567.02}',
      '90071992547409931234567.01',
      '90071992547409931234567.02',
    ],
    ['{"debit":"1.10","credit":"2"}', '1.1', '2'],
    ...['null', '{}', '{"debit":1}', '{"debit":"x","credit":1}', '{"debit":[],"credit":{}}', '5'].map(
      (wrong): [string] => [wrong],
    ),
  ]
  const refused = 'The status of export_1 is not that of a file: status.totals is no object'
  test.each(spellings)(
    'with totals %s has debit %s and credit %s, or is refused if both are undefined',
    async (totals, debit, credit) => {
      const ledger = await clientOf((answer) => void answer.writeHead(200, json).end(statusWith(totals)))
      const exported = ledger.fullExport({ exportId: 'export_1' })
      if (debit) expect((await exported).status.totals).toEqual({ debit, credit })
      else await expect(exported).rejects.toMatchObject({ code: 'UNEXPECTED-ANSWER', message: refused })
    },
  )
})
