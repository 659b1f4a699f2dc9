/** Single requests: retries, waits, errors, and what is refused before anything is sent. */
import { inspect } from 'node:util'
import { beforeEach, expect, test } from 'vitest'
import { forTests } from '../../../../test/support/for-tests.ts'
import type { Grandlivre, GrandlivreOptions, Wait } from '../../src/client/grandlivre.ts'
import { setClientStage } from '../support/client/client-stage.ts'
import { type Fault, spoil, untouched } from '../support/client/faulty-proxy.ts'

const stage = forTests(() => setClientStage(2_000))
untouched(() => stage.proxy)
/** Pauses so far, in milliseconds: the tests do not wait for them. */
let pauses: number[]
let waits: Wait[]
beforeEach(() => {
  ;[pauses, waits] = [[], []]
})

const now = Date.parse('2026-03-01T12:00:00Z')

function client(options: Partial<GrandlivreOptions> = {}): Grandlivre {
  const sleep = async (ms: number) => void pauses.push(ms)
  const pacing = { sleep, random: () => 0.5, now: () => now }
  return stage.ledger({ pacing, onWait: (wait) => waits.push(wait), ...options })
}

const path = '/mad/journals'
const query = { version: '1.0.0' }
const journals = (ledger: Grandlivre) => ledger.requests.json({ path, query })

/** A library that has received an answer before. */
async function reached(options?: Partial<GrandlivreOptions>): Promise<Grandlivre> {
  const ledger = client(options)
  await journals(ledger)
  stage.proxy.asked = []
  return ledger
}

const busy = (headers: Record<string, string>, status = 429): Fault => {
  const body = JSON.stringify({ error: { code: 'ERR-TOO-MANY-REQUEST', message: 'Too many', details: {} } })
  return { kind: 'answer', status, headers, body }
}

test('a request waits as long as Retry-After says, in seconds or until a date, plus a random time', async () => {
  const ledger = await reached()
  const date = new Date(now + 7_000).toUTCString()
  spoil(stage.proxy, [busy({ 'Retry-After': '3' }), busy({ 'Retry-After': date }, 503), busy({})])
  await journals(ledger)
  // Half of 500, of 1,000 and of 2,000 ms, after what Retry-After says.
  expect(pauses).toEqual([3_250, 7_500, 1_000])
  expect(waits.map(({ ms }) => ms)).toEqual(pauses)
  expect(waits[0]!.reason).toBe('Too many')
})

const passing: Fault[] = [
  { kind: 'refuse' },
  { kind: 'cut', afterBytes: 5 },
  { kind: 'end', afterBytes: 5 },
  { kind: 'flip', at: 100 },
  { kind: 'answer', status: 502, body: '<html>Bad gateway</html>' },
  { kind: 'answer', status: 503 },
  { kind: 'answer', status: 504 },
]
test.each(passing)('a GET is sent again after %o', async (fault) => {
  const ledger = await reached()
  spoil(stage.proxy, [fault])
  expect((await journals(ledger)).value).toEqual(
    expect.arrayContaining([expect.objectContaining({ type: 'Achat' })]),
  )
  expect(stage.proxy.asked).toHaveLength(2)
})

const lasting: [string, Fault, object][] = [
  [
    'a fault of the service',
    {
      kind: 'answer',
      status: 500,
      headers: { 'X-Request-Id': 'r1' },
      body: '{"error":{"code":"ERR-INTERNAL","message":"Failed"}}',
    },
    { code: 'ERR-INTERNAL', status: 500, requestId: 'r1', remedy: expect.stringContaining('operators') },
  ],
  [
    'a redirect',
    { kind: 'answer', status: 308, headers: { Location: 'https://other.example/api?token=x' } },
    {
      code: 'UNEXPECTED-ANSWER',
      status: 308,
      message: expect.stringMatching(/https:\/\/other\.example\/api,/),
    },
  ],
  [
    'a page that the service did not send',
    { kind: 'answer', status: 404, body: '<html>Not here</html>' },
    { code: 'UNEXPECTED-ANSWER', status: 404, message: expect.stringContaining('status 404') },
  ],
  [
    'a page in place of JSON',
    { kind: 'answer', status: 200, headers: { 'Content-Type': 'text/html; charset=utf-8' }, body: '<html>' },
    { code: 'UNEXPECTED-ANSWER', status: 200, message: expect.stringContaining('text/html') },
  ],
  [
    'a wait of a day',
    busy({ 'Retry-After': '86400' }, 503),
    { code: 'ERR-TOO-MANY-REQUEST', status: 503, retryAfterMs: 86_400_000 },
  ],
]
test.each(lasting)('%s is an error without a retry', async (_, fault, expected) => {
  const ledger = await reached()
  spoil(stage.proxy, [fault])
  await expect(journals(ledger)).rejects.toMatchObject(expected)
  expect(stage.proxy.asked).toHaveLength(1)
})

test('a POST is sent again after a refusal with Retry-After, but not after a lost connection', async () => {
  const ledger = await reached()
  const post = () =>
    ledger.requests.send({
      method: 'POST',
      path: '/webhook',
      body: '[]',
      headers: { 'Content-Type': 'application/json' },
    })
  spoil(stage.proxy, [{ kind: 'refuse' }])
  await expect(post()).rejects.toMatchObject({ code: 'CONNECTION-FAILED', status: 0 })
  spoil(stage.proxy, [{ kind: 'answer', status: 503 }])
  await expect(post()).rejects.toMatchObject({ status: 503 })
  expect(stage.proxy.asked).toHaveLength(2)
  spoil(stage.proxy, [busy({ 'Retry-After': '1' }), busy({ 'Retry-After': '1' }, 503)])
  await expect(post()).rejects.toMatchObject({ code: 'ERR-VALIDATION' })
  expect(stage.proxy.asked).toHaveLength(5)
})

test('a cut answer to a POST is an error of the library', async () => {
  const ledger = await reached()
  spoil(stage.proxy, [{ kind: 'cut', afterBytes: 5 }])
  const made = ledger.post('/webhook', { body: { postUrl: null, onEvents: ['document'] } })
  await expect(made).rejects.toMatchObject({
    name: 'GrandlivreError',
    code: 'ANSWER-LOST',
    message: expect.stringContaining('POST /webhook'),
  })
})

test('a filter without values is refused instead of selecting everything', async () => {
  const ledger = client()
  const all = ledger.movements({ exercice: stage.exercice, classAccount: [] })
  await expect(all.chunks().next()).rejects.toMatchObject({
    code: 'ERR-VALIDATION',
    issues: [{ parameter: 'classAccount' }],
  })
  for (const name of ['source', 'lettering', 'exercice'])
    expect(() => ledger.movements({ exercice: stage.exercice, [name]: '' })).toThrow(name)
})

test('a request is sent ten times if the service has answered before, and three times if it has not', async () => {
  const ledger = await reached()
  stage.proxy.fault = () => ({ kind: 'refuse' })
  await expect(journals(ledger)).rejects.toMatchObject({ code: 'CONNECTION-FAILED' })
  expect(stage.proxy.asked).toHaveLength(10)
  // Pauses grow up to half of 30 seconds.
  expect(pauses).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000])
  await expect(journals(client())).rejects.toMatchObject({ code: 'CONNECTION-FAILED' })
  expect(stage.proxy.asked).toHaveLength(13)
  const absent = client({ baseUrl: 'http://127.0.0.1:1' })
  await expect(journals(absent)).rejects.toMatchObject({ message: expect.stringContaining('ECONNREFUSED') })
})

test('a request that gets no answer in time counts as a lost connection', async () => {
  const ledger = client({ answerMs: 50, attemptsMax: 2 })
  stage.proxy.fault = () => new Promise(() => {})
  await expect(journals(ledger)).rejects.toMatchObject({
    code: 'CONNECTION-FAILED',
    message: 'GET /mad/journals: No byte arrived for 0.05 seconds',
  })
  expect(stage.proxy.asked).toHaveLength(2)
})

test('an abort ends a wait or a running request with its reason', async () => {
  const pacing = { random: () => 1 }
  for (const fault of [busy({ 'Retry-After': '60' }), { kind: 'stall', afterBytes: 5 }] as const) {
    const ledger = await reached({ pacing, stallMs: 600_000 })
    const leaving = new AbortController()
    spoil(stage.proxy, [fault])
    const asking = ledger.requests.json({ path, query, signal: leaving.signal })
    setTimeout(() => leaving.abort('stopped'), 30)
    await expect(asking).rejects.toBe('stopped')
  }
  const aborted = AbortSignal.abort('before')
  const ledger = await reached()
  await expect(ledger.requests.send({ path, query, signal: aborted })).rejects.toBe('before')
  expect(stage.proxy.asked).toHaveLength(0)
})

test.each(['/', '/api/v1', '/api/v1/', '///'])('an address may end with %s', async (end) => {
  const { value } = await journals(client({ baseUrl: stage.proxy.url + end }))
  expect(value).not.toEqual([])
})

test('a base address keeps its path', async () => {
  await journals(client({ baseUrl: `${stage.proxy.url}/ledger/api/v1/` })).catch(() => {})
  expect(stage.proxy.asked[0]!.path).toBe('/ledger/api/v1/mad/journals?version=1.0.0')
})

const refused: [Partial<GrandlivreOptions>, string][] = [
  [{ baseUrl: 'ledger.example.com' }, 'baseUrl'],
  [{ baseUrl: 'ftp://ledger.example.com' }, 'baseUrl'],
  [{ baseUrl: 'https://me:hidden@ledger.example.com' }, 'baseUrl'],
  [{ baseUrl: 'https://ledger.example.com?key=hidden' }, 'baseUrl'],
  [{ token: 'hidden\n' }, 'token'],
  [{ token: '' }, 'token'],
  [{ secret: 'hiddén' }, 'secret'],
  [{ society: 'hidden 1' }, 'society'],
  [{ stallMs: 0 }, 'stallMs'],
  [{ attemptsMax: 1.5 }, 'attemptsMax'],
]
test.each(refused)('the error for %o names the option, but not its value', (options, named) => {
  let thrown: unknown
  try {
    client(options)
  } catch (error) {
    thrown = error
  }
  expect(thrown).toMatchObject({ code: 'INVALID-OPTION', message: expect.stringContaining(named) })
  expect(String(thrown)).not.toContain('hidd')
})

test('no error contains the token or the secret', async () => {
  const ledger = await reached({ attemptsMax: 1 })
  const { token, secret } = stage.access
  for (const fault of [...passing.slice(0, 3), ...lasting.map(([, each]) => each)]) {
    spoil(stage.proxy, [fault])
    const error = await journals(ledger).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Error)
    const text = inspect(error, { depth: 10, showHidden: true })
    expect([text.includes(token), text.includes(secret)]).toEqual([false, false])
  }
})

test('credentials are sent to the service alone', async () => {
  const url = `${stage.proxy.url}/api/v1/mad/journals?version=1.0.0`
  await expect(client().requests.send({ url })).rejects.toMatchObject({ code: 'ERR-INVALID-AUTH-HEADER' })
  expect(stage.proxy.asked[0]!.headers).not.toHaveProperty('x-third-party-secret')
})
