/** Calls of the package for Python beside copies: full exports, refusals, and the verifier of webhooks. */
import { createHash, createHmac } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { errorCodes } from '../../packages/contract/src/error-codes.ts'
import { verifyWebhook } from '../../packages/partner/src/client/webhooks.ts'
import { isInstalled } from '../support/guides/tools.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { type PythonStage, setPythonStage } from './session.ts'

const { first, sameFirm } = folders

describe.skipIf(!isInstalled.package)('the package for Python', () => {
  let python: PythonStage
  let folder: string

  beforeAll(async () => {
    python = await setPythonStage()
    folder = await mkdtemp(join(tmpdir(), 'grandlivre-package-'))
  })

  afterEach(() => {
    python.proxy.fault = () => undefined
    python.proxy.asked = []
  })

  afterAll(async () => {
    await python?.close()
    if (folder) await rm(folder, { recursive: true })
  })

  describe('full exports', () => {
    const exportTo = (file: string, options: string) =>
      python.session.run(`
export = ledger(grandlivre.Ledger, "${sameFirm.folderId}", attempts=4).export(${JSON.stringify(join(folder, file))}, ${options})
result = [export["sha256"], export["fileSha256"]]`)

    test.each(['', ', compression="gzip"', ', compression="zstd"'])(
      'have both hashes (format="CSV"%s)',
      async (more) => {
        python.spoil('../files', () => undefined)
        let nth = 0
        python.proxy.fault = () => undefined
        const { result, error } = await exportTo('books.csv', `format="CSV"${more}`)
        nth += 1
        expect([error, nth]).toEqual([undefined, 1])
        const bytes = await readFile(join(folder, 'books.csv'))
        expect(createHash('sha256').update(bytes).digest('hex')).toBe(result[1])
        expect(result[0] === result[1]).toBe(more === '')
        expect((await readdir(folder)).filter((name) => name.endsWith('.part'))).toEqual([])
      },
    )

    test('go on from a part, and begin again where its bytes are wrong', async () => {
      await exportTo('whole.csv', 'format="CSV"')
      const whole = await readFile(join(folder, 'whole.csv'))
      const sha256 = createHash('sha256').update(whole).digest('hex')
      const part = join(folder, `again.csv.${sha256.slice(0, 16)}.part`)
      await writeFile(part, whole.subarray(0, 500))
      expect((await exportTo('again.csv', 'format="CSV"')).result).toEqual([sha256, sha256])
      await writeFile(part, Buffer.alloc(500, 'x'))
      expect((await exportTo('again.csv', 'format="CSV"')).result).toEqual([sha256, sha256])
      expect((await readFile(join(folder, 'again.csv'))).equals(whole)).toBe(true)
      await writeFile(part, Buffer.alloc(whole.length + 1, 'x'))
      expect((await exportTo('again.csv', 'format="CSV"')).result).toEqual([sha256, sha256])
    })

    test('are not believed where the status states another hash', async () => {
      python.spoil('mad/all', () => ({
        kind: 'rewrite',
        body: (whole) =>
          Buffer.from(String(whole).replace(/"sha256":"[^"]*"/, `"sha256":"${'a'.repeat(64)}"`)),
      }))
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
      '%s has the remedy of the service',
      async (code, { status, remedy }) => {
        python.proxy.fault = () => error(status, code)
        const { error: thrown } = await python.session.run('ledger(attempts=1).ledgers()')
        expect(thrown).toMatchObject({ code, remedy, status, message: 'A message' })
      },
    )

    test('for now are waited for as long as they say, and others are not', async () => {
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

    test('name parameters, folders and options', async () => {
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
        ['ledger(attempts=0)', 'attempts'],
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

    test('a redirect is not followed, since the secret would go with it', async () => {
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

  test('webhooks are verified as the library for JavaScript verifies them', async () => {
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
