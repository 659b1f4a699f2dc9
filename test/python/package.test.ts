/** The package for Python against the service: what it gives is what the service has, through cuts, waits and refusals. */
import { createHash, createHmac } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { errorCodes } from '../../packages/contract/src/error-codes.ts'
import { verifyWebhook } from '../../packages/partner/src/client/webhooks.ts'
import {
  type Fault,
  type FaultyProxy,
  startFaultyProxy,
} from '../../packages/partner/test/support/client/faulty-proxy.ts'
import { readLedgers } from '../support/changes/ledger-stream.ts'
import { download, movementsUrl } from '../support/download.ts'
import { firmAccess } from '../support/guides/run-program.ts'
import { isInstalled } from '../support/guides/tools.ts'
import { addLargeExercice, largeExercice } from '../support/ledgers/large-exercice.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { type ExportStage, setExportStage } from '../support/stages/export-stage.ts'
import { type PythonSession, startSession } from './session.ts'

const { first, sameFirm } = folders

/** What goes wrong with the nth request. */
type FaultOf = (nth: number) => Fault | undefined | Promise<Fault | undefined>

describe.skipIf(!isInstalled.package)('the package for Python', () => {
  let stage: ExportStage
  let proxy: FaultyProxy
  let session: PythonSession
  let folder: string

  beforeAll(async () => {
    const rateLimit = { requests: 1_000_000, windowMs: 10_000, concurrent: 200 }
    stage = await setExportStage({ rateLimit })
    await addLargeExercice(stage.staff.client, 3_000)
    await change(`update movements set description = E'tab\\t line\\n back\\\\slash \\\\N é' where id % 7 = 0;
      update entries set created_at = created_at + interval '0.25 seconds' where id % 3 = 0`)
    proxy = await startFaultyProxy(stage.service.url)
    session = startSession({ ...firmAccess(stage), baseUrl: proxy.url })
    folder = await mkdtemp(join(tmpdir(), 'grandlivre-package-'))
    await session.run(`
import decimal, pyarrow, pandas
def follow(books, known, **options):
    for change in ledger(**options).changes(known):
        books[change.society] = change.onto(books.get(change.society))
        known[change.society] = json.loads(json.dumps(change.known))
    return {society: digest(book) for society, book in books.items()}
books, known = {}, {}`)
  })

  afterEach(() => {
    proxy.fault = () => undefined
    proxy.asked = []
  })

  afterAll(async () => {
    await session?.close()
    await proxy?.close()
    await stage?.close()
    if (folder) await rm(folder, { recursive: true })
  })

  const change = (sql: string) => stage.staff.client.query(`set search_path = grandlivre; ${sql}`)
  const correct = (comment: string) =>
    change(`update entries set comment = '${comment}' where folder_id = ${sameFirm.folderId} and id % 5 = 0`)
  const spoil = (path: string, fault: FaultOf) => {
    let nth = 0
    proxy.fault = (asked) => {
      if (!asked.startsWith(`/api/v1/${path}`)) return undefined
      nth += 1
      return fault(nth)
    }
  }
  const asked = (path: string) => proxy.asked.filter((each) => each.path.startsWith(`/api/v1/${path}`))

  /** The SHA-256 of the rows of each ledger, as the service has them now. */
  async function truth(): Promise<Record<string, string>> {
    const url = `${stage.service.url}/api/v1/mad/ledgers/changes?version=1.0.0`
    const headers = { ...stage.firm, 'Content-Type': 'application/json' }
    const { ledgers } = readLedgers(await (await fetch(url, { method: 'POST', headers, body: '{}' })).text())
    return Object.fromEntries(
      ledgers.map(({ society, tables }) => {
        const rows = Object.values(tables).flat()
        return [
          society,
          createHash('sha256')
            .update(`${rows.join('\n')}\n`)
            .digest('hex'),
        ]
      }),
    )
  }

  /** Brings the copy up to date. @returns the requests for changes */
  async function follow(): Promise<{ society: string; since?: string; entries?: unknown[] }[][]> {
    proxy.asked = []
    const { result, error } = await session.run('result = follow(books, known)')
    expect(error).toBeUndefined()
    expect(result).toEqual(await truth())
    return asked('mad/ledgers/changes').map(({ body }) => JSON.parse(body()).ledgers)
  }

  test('a copy is the ledgers, first, after changes, and after its cursors were refused', async () => {
    const society = [first.folderId, sameFirm.folderId]
    expect(await follow()).toEqual([society.map((id) => ({ society: id }))])
    expect(await follow()).toEqual([])
    expect(asked('').map(({ path }) => path)).toEqual(['/api/v1/mad/ledgers?version=1.0.0'])
    await correct('corrected')
    await change(`delete from entries where folder_id = ${sameFirm.folderId} and id = (select max(id) from entries
      where folder_id = ${sameFirm.folderId})`)
    expect(await follow()).toMatchObject([[{ society: sameFirm.folderId, since: expect.any(String) }]])
    await session.run('for proof in ledger().verify(books): known[proof.society] = proof.known')
    await change('select begin_epoch(true)')
    await correct('in another epoch')
    const [refused, again, ...others] = await follow()
    expect([refused!.length, again!.length, others]).toEqual([2, 2, []])
    const everything = [['0', '9007199254740991']]
    // Nothing of the first has changed; the other is one block.
    expect(again!.map(({ entries }) => entries)).toEqual([undefined, everything])
    await change('select begin_epoch(true)')
    // The digests were not brought up to date, so nothing says what differs.
    expect((await follow())[1]!.map(({ entries }) => entries)).toEqual([everything, everything])
  })

  test('verify finds what was changed in a copy, also once it was in files, and changes mends it', async () => {
    await follow()
    const { result } = await session.run(`
def verdicts(books): return {proof.society: [list(proof.tables), bool(proof.entries), proof.is_equal] for proof in ledger().verify(books)}
def through_pandas(table): return pyarrow.Table.from_pandas(table.to_pandas())
result = [verdicts(books), verdicts({society: {name: through_pandas(table) for name, table in book.items()} for society, book in books.items()})]
for name, column, value in (("movements", "description", "x"), ("movements", "debit", decimal.Decimal("0.01")), ("accounts", "account_name", "x")):
    wrong = {society: dict(book) for society, book in books.items()}
    table = wrong["112"][name]
    values = [*table[column].to_pylist()[:-1], value]
    field = table.schema.field(column)
    at = table.schema.get_field_index(column)
    wrong["112"][name] = table.set_column(at, field, pyarrow.array(values).cast(field.type))
    result.append(verdicts(wrong))
    proofs = {proof.society: proof.known for proof in ledger().verify(wrong)}
    result.append([follow(wrong, proofs) == {society: digest(book) for society, book in books.items()}, "entries" in proofs["112"]])
lost = {"112": {**books["112"], "movements": books["112"]["movements"].slice(1)}}
result.append(verdicts(lost))
joined = grandlivre.joined(books, "movements")
result.append([joined.column_names[0], joined.num_rows == sum(book["movements"].num_rows for book in books.values())])`)
    const right = [[], false, true]
    const wrong = (...tables: string[]) => ({
      [first.folderId]: right,
      [sameFirm.folderId]: [tables, tables.length === 0, false],
    })
    const both = { [first.folderId]: right, [sameFirm.folderId]: right }
    const mended = [true, false]
    expect(result).toEqual([
      both,
      both,
      wrong(),
      mended,
      wrong(),
      mended,
      wrong('accounts'),
      mended,
      { [sameFirm.folderId]: [[], true, false] },
      ['society_id', true],
    ])
  })

  test('rows come as tuples and dicts, too, with values of Python', async () => {
    const { result } = await session.run(`
change = next(ledger().changes())
row, values = next(change.dicts("movements")), next(change.rows("movements"))
result = [list(row.values()) == list(values), {name: type(value).__name__ for name, value in row.items()}]
result.append([each["description"] for each in change.dicts("movements") if "tab" in (each["description"] or "")][0])`)
    expect(result[0]).toBe(true)
    expect(result[1]).toMatchObject({
      entry_id: 'int',
      entry_date: 'date',
      created_at: 'datetime',
      draft: 'bool',
      debit: 'Decimal',
      account_name: 'str',
    })
    expect(result[2]).toBe('tab\t line\n back\\slash \\N é')
  })

  test('changes go on where a stream broke off, in the middle of a ledger, too', async () => {
    for (const encoding of ['identity', 'gzip']) {
      // Several blocks of the large ledger arrive before each cut.
      spoil('mad/ledgers/changes', (nth) =>
        nth < 3 ? { kind: 'cut', afterBytes: nth === 1 ? 1_500_000 : 150_000 } : undefined,
      )
      if (encoding === 'gzip')
        spoil('mad/ledgers/changes', (nth) => (nth === 1 ? { kind: 'end', afterBytes: 5_000 } : undefined))
      proxy.asked = []
      const { result, error } = await session.run(
        `result = follow({}, {}, encoding="${encoding}", attempts=4)`,
      )
      expect([error, result]).toEqual([undefined, await truth()])
      const bodies = asked('mad/ledgers/changes').map(({ body }) => JSON.parse(body()).ledgers)
      expect(bodies.length).toBeGreaterThan(1)
      if (encoding === 'identity')
        expect(bodies[1][0]).toMatchObject({
          society: first.folderId,
          since: expect.any(String),
          entries: [[expect.any(String), '9007199254740991']],
        })
    }
    spoil('mad/ledgers/changes', () => ({ kind: 'cut', afterBytes: 1_000 }))
    const { error } = await session.run('follow({}, {})')
    expect(error).toMatchObject({
      code: 'CONNECTION-FAILED',
      message: expect.stringContaining('The ledgers stopped coming'),
    })
  })

  describe('movements', () => {
    const read = (more = '') =>
      session.run(`
movements = list(ledger(grandlivre.Ledger, "${first.folderId}", attempts=4).movements(idExercice="${largeExercice}"${more}))
result = [[each["producerId"], each["entry"]["producerId"], str(each["value"]["debit"])] for each in movements]`)

    async function expectMovements(more = '', query = {}): Promise<void> {
      const { result, error } = await read(more)
      const url = movementsUrl(stage.service.url, { idExercice: largeExercice, ...query })
      const { json } = await download(url, { ...stage.firm, 'society-id': first.folderId })
      expect(error).toBeUndefined()
      expect(result).toEqual(
        json.map((each: { producerId: string; entry: { producerId: string }; value: { debit: number } }) => [
          each.producerId,
          each.entry.producerId,
          String(each.value.debit),
        ]),
      )
    }

    test('are those of the selection, also over several connections', async () => {
      await expectMovements()
      await expectMovements(', classAccount=["60", "61"]', { classAccount: '60,61' })
      for (const kind of ['cut', 'end'] as const) {
        proxy.asked = []
        spoil('mad/movements?', (nth) => (nth === 1 ? { kind, afterBytes: 2_000_000 } : undefined))
        await expectMovements()
        expect(asked('mad/movements?')).toHaveLength(2)
      }
    })

    test.each<[string, string, Fault, string]>([
      ['one bit of a line that is another', 'mad/movements?', { kind: 'flip', at: 1_500_000 }, 'NOT-PROVEN'],
      [
        'an end before the last line, again and again',
        'mad/movements?',
        { kind: 'end', afterBytes: 0 },
        'CONNECTION-FAILED',
      ],
      [
        'a line that comes twice',
        'mad/movements?',
        {
          kind: 'rewrite',
          body: (whole) => Buffer.concat([whole.subarray(0, whole.indexOf(10) + 1), whole]),
        },
        'NOT-PROVEN',
      ],
      [
        'lines that are no JSON',
        'mad/movements?',
        { kind: 'rewrite', body: () => Buffer.from('[\n') },
        'NOT-PROVEN',
      ],
      [
        'digests that are others',
        'mad/movements/blocks',
        {
          kind: 'rewrite',
          body: (whole) => Buffer.from(String(whole).replace(/"sha256":"./, '"sha256":"g')),
        },
        'NOT-PROVEN',
      ],
      [
        'digests that leave entries out',
        'mad/movements/blocks',
        { kind: 'rewrite', body: (whole) => Buffer.from(JSON.stringify(JSON.parse(String(whole)).slice(1))) },
        'NOT-PROVEN',
      ],
      [
        'digests of another number of rows',
        'mad/movements/blocks',
        { kind: 'rewrite', body: (whole) => Buffer.from(String(whole).replace('"rows":', '"rows":9')) },
        'NOT-PROVEN',
      ],
    ])('are not believed with %s', async (_, path, fault, code) => {
      spoil(path, () => fault)
      expect((await read()).error?.code).toBe(code)
    })

    test('come in one state: a ledger that changes before the first is read again, later it is an error', async () => {
      const touch = () => change(`update entries set comment = clock_timestamp()::text where id = 1000000`)
      const changing: FaultOf = async (nth) => {
        if (nth === 1) await touch()
        return undefined
      }
      spoil('mad/movements?', changing)
      await expectMovements()
      expect(asked('mad/movements?')).toHaveLength(2)
      spoil('mad/movements?', async (nth) => {
        if (nth === 1) return { kind: 'cut', afterBytes: 2_000_000 }
        await touch()
        return undefined
      })
      expect((await read()).error?.code).toBe('LEDGER-CHANGED')
    })
  })

  describe('full exports', () => {
    const exportTo = (file: string, options: string) =>
      session.run(`
export = ledger(grandlivre.Ledger, "${sameFirm.folderId}", attempts=4).export(${JSON.stringify(join(folder, file))}, ${options})
result = [export["sha256"], export["fileSha256"]]`)

    test.each(['', ', compression="gzip"', ', compression="zstd"'])(
      'have both hashes (format="CSV"%s)',
      async (more) => {
        spoil('../files', () => undefined)
        let nth = 0
        proxy.fault = () => undefined
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
      spoil('mad/all', () => ({
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
        proxy.fault = () => error(status, code)
        const { error: thrown } = await session.run('ledger(attempts=1).ledgers()')
        expect(thrown).toMatchObject({ code, remedy, status, message: 'A message' })
      },
    )

    test('for now are waited for as long as they say, and others are not', async () => {
      for (const [status, code] of [
        [429, 'ERR-TOO-MANY-REQUEST'],
        [503, 'ERR-UNAVAILABLE'],
      ] as const) {
        spoil('mad/ledgers', (nth) => (nth < 3 ? error(status, code) : undefined))
        const { result } = await session.run('waits.clear()\nledger(attempts=3).ledgers()\nresult = waits')
        expect(result).toHaveLength(2)
        expect(Math.min(...result)).toBeGreaterThanOrEqual(7)
      }
      for (const status of [401, 403, 409, 410, 421]) {
        proxy.asked = []
        proxy.fault = () => error(status, 'ERR-X')
        const { error: thrown } = await session.run('ledger().ledgers()')
        expect([thrown?.code, proxy.asked.length]).toEqual(['ERR-X', 1])
      }
    })

    test('name parameters, folders and options', async () => {
      const raised = async (code: string) => (await session.run(code)).error
      expect(
        await raised(`list(ledger(grandlivre.Ledger, "${first.folderId}").movements(idExercise="1"))`),
      ).toMatchObject({
        code: 'ERR-VALIDATION',
        message: expect.stringContaining('idExercise: is not a parameter'),
      })
      expect(await raised('list(ledger().verify({"999": books["112"]}))')).toMatchObject({
        code: 'ERR-FOLDER-NOT-FOUND',
        message: expect.stringContaining('999'),
      })
      for (const [code, named] of [
        ['grandlivre.Firm("ledger.example.com", "t", "s")', 'url'],
        ['grandlivre.Firm("http://127.0.0.1", "t t", "s")', 'token'],
        ['grandlivre.Firm("http://127.0.0.1", "t", "")', 'secret'],
        ['ledger(attempts=0)', 'attempts'],
        [
          'list(ledger().verify({"112": {**books["112"], "movements": books["112"]["accounts"]}}))',
          'movements',
        ],
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
      proxy.fault = () => ({ kind: 'answer', status: 302, headers: { Location: `${proxy.url}/elsewhere` } })
      expect((await session.run('ledger().ledgers()')).error).toMatchObject({
        code: 'UNEXPECTED-ANSWER',
        status: 302,
      })
      expect(proxy.asked).toHaveLength(1)
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
        const { result } = await session.run(`
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
