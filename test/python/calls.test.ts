/** Calls of the package for Python beside copies: full exports, refusals, and the verifier of webhooks. */
import { createHash, createHmac } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { errorCodes } from '../../packages/contract/src/error-codes.ts'
import { verifyWebhook } from '../../packages/partner/src/client/webhooks.ts'
import { forTests } from '../support/for-tests.ts'
import { isInstalled } from '../support/guides/tools.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { rewritten, setPythonStage } from './session.ts'

const { first, sameFirm } = folders

describe.skipIf(!isInstalled.package)('the package for Python', () => {
  const python = forTests(setPythonStage)
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'grandlivre-package-'))
  })

  afterEach(() => {
    python.proxy.fault = () => undefined
    python.proxy.asked = []
  })

  afterAll(async () => {
    if (folder) await rm(folder, { recursive: true })
  })

  describe('full exports', () => {
    const exportTo = (file: string, options: string) =>
      python.session.run(`
export = ledger(grandlivre.Ledger, "${sameFirm.folderId}", attempts=4).export(${JSON.stringify(join(folder, file))}, ${options})
result = [export["sha256"], export["fileSha256"]]`)

    const parts = async () => (await readdir(folder)).filter((name) => name.endsWith('.part'))

    test.each(['', ', compression="gzip"', ', compression="zstd"'])(
      'state both hashes (format="CSV"%s)',
      async (more) => {
        const { result, error } = await exportTo('books.csv', `format="CSV"${more}`)
        expect(error).toBeUndefined()
        const bytes = await readFile(join(folder, 'books.csv'))
        expect(createHash('sha256').update(bytes).digest('hex')).toBe(result[1])
        expect(result[0] === result[1]).toBe(more === '')
        expect(await parts()).toEqual([])
      },
    )

    test('resume where a download broke off', async () => {
      // Files come from the service itself, so that their addresses lead past the proxy.
      python.spoil('mad/all', () =>
        rewritten((whole) => whole.replaceAll(python.stage.service.url, python.proxy.url)),
      )
      const spoilStatus = python.proxy.fault
      let downloads = 0
      python.proxy.fault = (path, headers) => {
        if (path.startsWith('/api/')) return spoilStatus(path, headers)
        downloads += 1
        return downloads < 3 ? { kind: 'cut', afterBytes: 400 } : undefined
      }
      const { result, error } = await exportTo('again.csv', 'format="CSV"')
      expect([error, downloads]).toEqual([undefined, 3])
      const bytes = await readFile(join(folder, 'again.csv'))
      expect(createHash('sha256').update(bytes).digest('hex')).toBe(result[1])
    })

    test('downloaded to one path at once each use their own part file, and one complete file stays', async () => {
      const { result } = await python.session.run(`
import concurrent.futures
def export(format): return ledger(grandlivre.Ledger, "${sameFirm.folderId}").export(${JSON.stringify(join(folder, 'race'))}, format=format)["sha256"]
with concurrent.futures.ThreadPoolExecutor(6) as pool: result = list(pool.map(export, ["CSV"] * 6))`)
      const bytes = await readFile(join(folder, 'race'))
      expect(result).toEqual(Array(6).fill(createHash('sha256').update(bytes).digest('hex')))
      expect(await parts()).toEqual([])
    })

    test('to a path that cannot be written fail before any request', async () => {
      for (const path of ['missing/books.csv', '.']) {
        const { error } = await exportTo(path, 'format="CSV"')
        expect(error).toMatchObject({ code: 'INVALID-OPTION', message: expect.stringMatching('^path: ') })
      }
      expect(python.asked('mad/all')).toEqual([])
      expect(await parts()).toEqual([])
    })

    test('that the disk refuses are not retried', async () => {
      const { result } = await python.session.run(`
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
waits.clear()
try:
    ledger(grandlivre.Ledger, "${sameFirm.folderId}").export(${JSON.stringify(join(folder, 'full.csv'))}, format="CSV")
except OSError as error:
    result = [error.strerror, [wait for wait in waits if wait not in (0.1, 0.2, 0.4, 0.7, 1, 2)]]
finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)`)
      expect(result).toEqual(['File too large', []])
      expect(await parts()).toEqual([])
    })

    test.each(['null', '5', '[]', '{"id":"1"}'])('with a status that is %s leave no file', async (body) => {
      python.spoil('mad/all', () => rewritten((whole) => body.padEnd(whole.length)))
      expect((await exportTo('odd.csv', 'format="CSV"')).error?.code).toBe('UNEXPECTED-ANSWER')
    })

    test('are downloaded only over HTTP', async () => {
      python.spoil('mad/all', () =>
        rewritten((whole) =>
          whole.replace(/"url":"[^"]*"/, '"url":"file:///etc/hostname"').padEnd(whole.length),
        ),
      )
      expect((await exportTo('local.csv', 'format="CSV"')).error).toMatchObject({
        code: 'UNEXPECTED-ANSWER',
        message: 'file:///etc/hostname is no address of HTTP',
      })
    })

    test('are refused if the status states another hash', async () => {
      python.spoil('mad/all', () =>
        rewritten((whole) => whole.replace(/"sha256":"[^"]*"/, `"sha256":"${'a'.repeat(64)}"`)),
      )
      expect((await exportTo('lie.csv', 'format="CSV", compression="gzip"')).error?.code).toBe('FILE-DIFFERS')
      expect((await readdir(folder)).filter((name) => name.startsWith('lie'))).toEqual([])
    })
  })

  describe('refusals', () => {
    const error = (status: number, code: string) => ({
      kind: 'answer' as const,
      status,
      headers: {
        'Content-Type': 'application/json',
        ...([429, 503].includes(status) ? { 'Retry-After': '7' } : {}),
      },
      body: JSON.stringify({ error: { code, message: 'A message', details: { requestId: 'r' } } }),
    })

    test.each(Object.entries(errorCodes))(
      'with %s include the remedy from the service',
      async (code, { status, remedy }) => {
        python.proxy.fault = () => error(status, code)
        const { error: thrown } = await python.session.run('ledger(attempts=1).ledgers()')
        expect(thrown).toMatchObject({ code, remedy, status, message: 'A message' })
      },
    )

    test('that are temporary are retried after the time they state, and others are not retried', async () => {
      for (const [status, code] of [
        [429, 'ERR-TOO-MANY-REQUEST'],
        [503, 'ERR-UNAVAILABLE'],
      ] as const) {
        python.spoil('mad/ledgers', (nth) => (nth < 3 ? error(status, code) : undefined))
        const { result } = await python.session.run(
          'waits.clear()\nledger(attempts=3).ledgers()\nresult = waits',
        )
        expect(result).toHaveLength(2)
        expect(Math.min(...result)).toBeGreaterThanOrEqual(7)
      }
      for (const status of [401, 403, 409, 410, 421]) {
        python.proxy.asked = []
        python.proxy.fault = () => error(status, 'ERR-X')
        const { error: thrown } = await python.session.run('ledger().ledgers()')
        expect([thrown?.code, python.proxy.asked.length]).toEqual(['ERR-X', 1])
      }
    })

    test('name the wrong parameters, folders and options', async () => {
      const raised = async (code: string) => (await python.session.run(code)).error
      expect(
        await raised(`list(ledger(grandlivre.Ledger, "${first.folderId}").movements(idExercise="1"))`),
      ).toMatchObject({
        code: 'ERR-VALIDATION',
        message: expect.stringContaining('idExercise: is not a parameter'),
      })
      expect(await raised('list(ledger().verify({"999": {}}))')).toMatchObject({
        code: 'ERR-FOLDER-NOT-FOUND',
        message: expect.stringContaining('999'),
      })
      for (const [code, named] of [
        ['grandlivre.Firm("ledger.example.com", "t", "s")', 'url'],
        ['grandlivre.Firm("http://127.0.0.1", "t t", "s")', 'token'],
        ['grandlivre.Firm("http://127.0.0.1", "t", "")', 'secret'],
        ...[
          'http://[::1',
          'http://é.fr',
          'http://h:99999',
          'http://h/#x',
          'http://h?x',
          'http://u@h',
          'http://a..b',
          'ftp://h',
        ].map((url) => [`grandlivre.Firm("${url}", "t", "s")`, 'url']),
        ['grandlivre.Firm(None, "t", "s")', 'url'],
        ['grandlivre.Firm("http://h", None, "s")', 'token'],
        ['grandlivre.Firm("http://h", "t", None)', 'secret'],
        ['grandlivre.Ledger("http://h", "t", "s", 1002)', 'society'],
        ['ledger(attempts=0)', 'attempts'],
        ['ledger(attempts="3")', 'attempts'],
        ['ledger(timeout="60")', 'timeout'],
        ['ledger(timeout=float("nan"))', 'timeout'],
        ['grandlivre.joined({}, "movement")', 'name: movement'],
        ['grandlivre.joined({"112": {}}, "movements")', 'the copy of 112 lacks the table movements'],
        ['grandlivre.joined({"112": {"banks": {}}}, "banks")', 'table banks'],
        ['grandlivre.verify_webhook({}, "[]", secret="s")', 'body'],
        ['grandlivre.verify_webhook({}, b"[]", secret=b"s")', 'secret'],
        ['grandlivre.verify_webhook({}, b"[]", signing_secret=b"s")', 'signing_secret'],
        ['grandlivre.verify_webhook({}, b"[]")', 'secret, signing_secret'],
        ['list(ledger().verify({"112": {}}))', 'movements'],
      ])
        expect(await raised(code!)).toMatchObject({
          code: 'INVALID-OPTION',
          message: expect.stringContaining(named!),
        })
      expect(
        await raised('grandlivre.Firm("http://127.0.0.1:1", "t", "s", sleep=waits.append).ledgers()'),
      ).toMatchObject({ code: 'CONNECTION-FAILED' })
    })

    test('show control characters of a terminal as their numbers', async () => {
      python.proxy.fault = () => ({
        ...error(400, 'ERR-VALIDATION'),
        body: JSON.stringify({ error: { code: 'ERR-\u0007', message: 'a\u001b[2J\u202eb\u009b\r\n' } }),
      })
      const { error: thrown } = await python.session.run('ledger().ledgers()')
      expect(thrown!.code).toBe('ERR-\\u0007')
      expect(thrown!.message).toBe('a\\u001b[2J\\u202eb\\u009b\\u000d\\u000a')
    })

    test('include redirects, which are not followed since the secret would go with them', async () => {
      python.proxy.fault = () => ({
        kind: 'answer',
        status: 302,
        headers: { Location: `${python.proxy.url}/elsewhere` },
      })
      expect((await python.session.run('ledger().ledgers()')).error).toMatchObject({
        code: 'UNEXPECTED-ANSWER',
        status: 302,
      })
      expect(python.proxy.asked).toHaveLength(1)
    })
  })

  test('the tables of several folders are joined, and an empty list of folders gives an empty table', async () => {
    const { result } = await python.session.run(`
import pyarrow
books = {change.society: dict(change.tables) for change in ledger().changes()}
whole = grandlivre.joined(books, "accounts")
books["112"]["accounts"] = pyarrow.Table.from_pandas(books["112"]["accounts"].to_pandas())
empty = grandlivre.joined({}, "accounts")
result = [whole.num_rows > 0, grandlivre.joined(books, "accounts").equals(whole), empty.schema.equals(whole.schema), empty.num_rows]`)
    expect(result).toEqual([true, true, true, 0])
  })

  test('signed bodies that are no events are refused', async () => {
    const { result } = await python.session.run(`
import hashlib, hmac
result = []
for body in (b"[" * 200_000, b'[1,2,"x"]', b"{}", b"\\xff"):
    headers = {"date": "1800000000000", "signature": hmac.new(b"s", body + b"1800000000000", hashlib.sha256).hexdigest()}
    try: grandlivre.verify_webhook(headers, body, secret="s", now=1_800_000_000)
    except grandlivre.WebhookRefused as refused: result.append(refused.reason)`)
    expect(result).toEqual(Array(4).fill('body-without-events'))
  })

  test('webhooks are verified exactly as by the library for JavaScript', async () => {
    const body = '[{"name":"ping"}]'
    const secret = 'glv_secret_x'
    const signingSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
    const [now, date] = [1_800_000_000_000, '1800000000000']
    const key = Buffer.from(signingSecret.slice(6), 'base64')
    const sign = (text: string) => createHmac('sha256', key).update(text).digest('base64')
    const right: Record<string, string> = {
      Date: date,
      Signature: createHmac('sha256', secret).update(body).update(date).digest('hex'),
      'Webhook-Id': 'd1',
      'Webhook-Timestamp': '1800000000',
      'Webhook-Signature': `v1,${Buffer.alloc(32).toString('base64')} v1,${sign(`d1.1800000000.${body}`)}`,
    }
    const cases: [Record<string, string>, string, number][] = [
      [right, body, now],
      [{ ...right, Signature: 'x' }, body, now],
      [{ ...right, Date: 'Sat' }, body, now],
      [{ ...right, Signature: 'a'.repeat(64) }, body, now],
      [{ ...right, 'Webhook-Id': 'd2' }, body, now],
      [{ ...right, 'Webhook-Timestamp': 'x' }, body, now],
      [{ ...right, 'Webhook-Signature': 'v2,x' }, body, now],
      [right, `${body} `, now],
      [{ ...right, 'Content-Digest': 'sha-256=:x:' }, `${body} `, now],
      [right, body, now + 300_001],
      [right, body, now - 300_001],
      [right, body, now + 299_999],
    ]
    for (const secrets of [
      { secret },
      { signingSecret },
      { secret, signingSecret },
      { secret: ['old', secret] },
    ])
      for (const [headers, sent, at] of cases) {
        const expected = verifyWebhook({ ...secrets, headers, body: sent, now: at })
        const given = { headers, body: sent, now: at / 1000, ...secrets }
        const { result } = await python.session.run(`
given = json.loads(${JSON.stringify(JSON.stringify(given))})
if "signingSecret" in given: given["signing_secret"] = given.pop("signingSecret")
try:
    result = grandlivre.verify_webhook(given.pop("headers"), given.pop("body").encode(), **given)
except grandlivre.WebhookRefused as refused:
    result = json.loads(refused.body)`)
        if (expected.valid) expect(result).toEqual(expected.events)
        else expect(result).toEqual(JSON.parse(expected.body))
      }
  })
})
