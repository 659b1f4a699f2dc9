/** The bytes of a movements export: hostile texts, extreme amounts, encodings, trailers, headers. */
import { describe, expect, test } from 'vitest'
import { type Download, download, movementsUrl } from '../support/download.ts'
import { forTests } from '../support/for-tests.ts'
import { addEntry } from '../support/ledgers/ledger.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { plainBody, readPlainMovements } from '../support/plain/plain-movement.ts'
import { folderReference, setExportStage } from '../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

const forms = { json: 'application/json', ndjson: 'application/x-ndjson' } as const
const encodings = ['identity', 'gzip', 'zstd'] as const

const ask = (query: Record<string, string>, headers: Record<string, string> = {}, method = 'GET') =>
  download(movementsUrl(stage.service.url, query), { ...stage.company, ...headers }, method)

function expectWhole(answer: Download, expected: string, rows: number): void {
  expect(answer.status).toBe(200)
  expect(answer.text).toBe(expected)
  expect(answer.headers.trailer).toBe('X-Row-Count, X-Content-SHA256')
  expect(answer.trailers).toEqual({ 'x-row-count': String(rows), 'x-content-sha256': answer.sha256 })
}

/** Expects everything of one day to equal the oracle, in each media type and encoding. */
async function expectDay(day: string): Promise<void> {
  const expected = await readPlainMovements(stage.staff.client, folders.first, 'e.date = $3', [day])
  expect(expected.length).toBeGreaterThan(0)
  for (const form of ['json', 'ndjson'] as const)
    for (const encoding of encodings) {
      const headers = { Accept: forms[form], 'Accept-Encoding': encoding }
      const answer = await ask({ startDate: day, endDate: day }, headers)
      expectWhole(answer, plainBody(expected, form), expected.length)
    }
}

let nextId = 100_000
const newId = () => String(nextId++)

describe('a text', () => {
  test('is complete in the names of accounts, journals, axes, sections and partners', async () => {
    const { client } = stage.staff
    const text = `"\\\\N\t\n\u0001\u007f\u2028😀`
    const ofFolder = 'schema_id = 100 and folder_id = 111'
    for (const table of ['accounts', 'journals', 'axes', 'sections'])
      await client.query(`update grandlivre.${table} set name = $1 || id where ${ofFolder}`, [text])
    for (const table of ['journals', 'axes', 'sections'])
      await client.query(`update grandlivre.${table} set code = $1 || id where ${ofFolder}`, [text])
    await client.query('update grandlivre.third_parties set name = $1', [text])
    const expected = await readPlainMovements(
      client,
      folders.first,
      'e.exercice_id = 11 and e.validated_at is not null',
    )
    expectWhole(await ask({ idExercice: '11' }), plainBody(expected, 'json'), expected.length)
  })

  test('is complete at any place if it is far larger than a chunk, even if escaping makes it six times longer', async () => {
    const day = '2024-12-01'
    const long = [
      '\u0001'.repeat(400_000),
      'é"\\\t'.repeat(40_000),
      'x'.repeat(300_000),
      '😀'.repeat(100_000),
      '\\N'.repeat(50_000),
    ]
    for (const [i, description] of long.entries()) {
      await addEntry(stage.staff.client, folders.first, { id: newId(), date: day, comment: long[4 - i]! }, [
        { id: newId(), description },
        { id: newId(), description: 'short' },
        { id: newId(), invoiceNumber: description, letteringState: 'complete', letteringCode: description },
      ])
    }
    await expectDay(day)
  })
})

test('movements are complete in every encoding even if each reserves a whole chunk for a few bytes', async () => {
  const { client } = stage.staff
  const day = '2024-12-04'
  const ofSection = 'schema_id = 100 and folder_id = 111 and id = 71'
  for (let i = 0; i < 40; i++)
    await addEntry(client, folders.first, { id: newId(), date: day }, [
      { id: newId(), description: `movement ${i} `.repeat(20) },
    ])
  // Every movement reserves buffer for the longest section of the folder.
  const [{ name }] = (await client.query(`select name from grandlivre.sections where ${ofSection}`)).rows
  try {
    for (const length of [300_000, 300_001]) {
      const long = 'x'.repeat(length)
      await client.query(`update grandlivre.sections set name = $1 where ${ofSection}`, [long])
      await expectDay(day)
    }
  } finally {
    await client.query(`update grandlivre.sections set name = $1 where ${ofSection}`, [name])
  }
})

test('amounts are exact at any size', async () => {
  const day = '2024-12-02'
  const units = [0n, 1n, -1n, 9n, 10n, -10n, 99n, 100n, -100n, 101n, 26444n, 1000000000000000000n]
  const edges = [9_007_199_254_740_992n, 9_007_199_254_740_993n, 9_223_372_036_854_775_807n]
  const amounts = [...units, ...edges, ...edges.map((edge) => -edge)]
  const rates = [0n, 1n, 10n, 100n, 9999n, 10000n, 333333n, 1000000n, 12345678n, -500000n]
  const rows = amounts.flatMap((money, i) => [
    {
      id: newId(),
      debit: money,
      shares: [71n, money, rates[i % rates.length]!, 72n, -money, 5n, 74n, money, 1n],
    },
    { id: newId(), credit: money, shares: [75n, money, rates[(i + 3) % rates.length]!] },
  ])
  await addEntry(stage.staff.client, folders.first, { id: newId(), date: day }, rows)
  const currencies = ['1.083200', '0.000001', '123456789012.345678', '100.000000', '1.000000']
  for (const rate of currencies)
    await addEntry(stage.staff.client, folders.first, { id: newId(), date: day, currency: 'USD', rate }, [
      { id: newId() },
    ])
  await expectDay(day)
  const { text } = await ask({ startDate: day, endDate: day })
  for (const value of [
    '"credit":0,"debit":0,"amount":0',
    '"credit":0.01,"debit":0,"amount":0.01',
    '"credit":0,"debit":0.01,"amount":-0.01',
    '"credit":0,"debit":-0.01,"amount":0.01',
    '"credit":0.1,"debit":0,"amount":0.1',
    '"credit":90071992547409.93,"debit":0,"amount":90071992547409.93',
    '"credit":0,"debit":-92233720368547758.07,"amount":92233720368547758.07',
    '"credit":-92233720368547758.07,"debit":0,"amount":-92233720368547758.07',
    '"rate":33.3333',
    '"rate":0.0001',
    '"rate":1.0832}',
    '"rate":0.000001}',
    '"rate":123456789012.345678}',
  ])
    expect(text).toContain(value)
  expect(text).not.toMatch(/":-0[,}]|\de[+-]?\d/)
})

test('numbers in a partner’s metadata are returned as the partner sent them', async () => {
  const day = '2024-12-03'
  const id = newId()
  await addEntry(stage.staff.client, folders.first, { id, date: day }, [{ id: newId() }])
  const numbers = '[9007199254740993, 0.10, 12345678901234567890.5, -0.000000001]'
  await stage.staff.client.query(
    'update grandlivre.entries set partner_metadata = $1 where folder_id = 111 and id = $2',
    [`{"json": ${numbers}, "partnerId": "p"}`, id],
  )
  const { text } = await ask({ startDate: day, endDate: day })
  expect(text).toContain(`"partnerMetadata":{"partnerId":"p","json":${numbers.replaceAll(' ', '')}}`)
})

describe('an answer', () => {
  test('without movements is an empty array in JSON and an empty body in NDJSON, with its trailers', async () => {
    const nothing = { startDate: '1990-01-01', endDate: '1990-12-31' }
    for (const encoding of encodings) {
      expectWhole(await ask(nothing, { 'Accept-Encoding': encoding }), '[]', 0)
      expectWhole(await ask(nothing, { 'Accept-Encoding': encoding, Accept: forms.ndjson }), '', 0)
    }
  })

  test.each(encodings)('in encoding %s has the same bytes each time', async (encoding) => {
    for (const accept of Object.values(forms)) {
      const headers = { 'Accept-Encoding': encoding, Accept: accept }
      const answers = []
      for (let i = 0; i < 3; i++) answers.push(await ask({ idExercice: '12' }, headers))
      const { headers: first, bytes } = answers[0]!
      expect(first['content-encoding']).toBe(encoding === 'identity' ? undefined : encoding)
      expect(first['content-length']).toBeUndefined()
      for (const answer of answers) {
        expect(answer.bytes.equals(bytes)).toBe(true)
        expect(answer.headers.etag).toBe(first.etag)
      }
    }
  })

  test('has the encoding that the client prefers', async () => {
    const encodingOf = async (accepted: string) =>
      (await ask({ idExercice: '12' }, { 'Accept-Encoding': accepted }, 'HEAD')).headers['content-encoding']
    for (const [accepted, encoding] of [
      ['', undefined],
      ['br', undefined],
      ['identity', undefined],
      ['gzip, deflate, br', 'gzip'],
      ['gzip, deflate, br, zstd', 'zstd'],
      ['zstd;q=0.5, gzip', 'gzip'],
      ['gzip;q=0, zstd;q=0', undefined],
      ['*', 'zstd'],
    ] as const)
      expect(await encodingOf(accepted), accepted).toBe(encoding)
    expect((await ask({ idExercice: '12' })).headers['content-encoding']).toBeUndefined()
  })

  test('names its file after the reference of the folder, its period and its media type', async () => {
    const nameOf = async (query: Record<string, string>, headers = {}) =>
      String((await ask(query, headers, 'HEAD')).headers['content-disposition'])
    const name = await nameOf({ idExercice: '12' })
    expect(name).toMatch(/^attachment; filename="[\w.-]+"; filename\*=UTF-8''[\w.%~-]+$/)
    expect(decodeURIComponent(name.split("UTF-8''")[1]!)).toBe(
      `${folderReference}_movements_2024-07-01_2025-06-30.json`,
    )
    expect(name).not.toMatch(/["'][^"]*["'][^"']*filename="/)
    const firm = { ...stage.firm, 'society-id': folders.sameFirm.folderId, Accept: forms.ndjson }
    expect(await nameOf({ startDate: '2024-01-01', endDate: '2024-02-29' }, firm)).toBe(
      'attachment; filename="112_movements_2024-01-01_2024-02-29.ndjson"',
    )
  })

  test('lists in Vary the headers that it depends on', async () => {
    for (const method of ['GET', 'HEAD']) {
      const { headers } = await ask({ idExercice: '12' }, {}, method)
      const vary = String(headers.vary).toLowerCase().split(/, */)
      expect(vary).toEqual(
        expect.arrayContaining(['accept', 'accept-encoding', 'authorization', 'society-id']),
      )
      expect(headers['x-request-id']).toBeDefined()
      expect(headers['x-rate-limit-total']).toBeDefined()
    }
  })
})
