/** Debit, credit and balance by account, against sums that the test computes from the movements itself. */
import { beforeAll, describe, expect, test } from 'vitest'
import { download } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { addEntry } from '../../support/ledgers/ledger.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { folderReference, setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

const { schemaId, folderId } = folders.first
/** A journal of type OD_EXC. */
const outsideBooks = '45'

beforeAll(async () => {
  const { client } = stage.staff
  // More accounts than a batch of the cursor, and sums that neither a double nor a bigint can hold.
  await client.query(
    `insert into grandlivre.accounts (schema_id, folder_id, id, number, name)
     select 100, 111, 1000 + n, '7' || lpad((n * 37 % 250)::text, 3, '0') || 'X', 'Vente ' || n
     from generate_series(1, 250) n`,
  )
  await addEntry(
    client,
    { schemaId, folderId },
    { id: '680001' },
    Array.from({ length: 250 }, (_, n) => ({
      id: String(680_001 + n),
      accountId: String(1001 + n),
      debit: n % 2 === 0 ? BigInt(n) * 7n : 0n,
      credit: n % 2 === 0 ? 0n : BigInt(n) * -3n,
    })),
  )
  await addEntry(client, { schemaId, folderId }, { id: '685001', journalId: outsideBooks }, [
    { id: '685001', debit: 100n },
  ])
  await addEntry(
    client,
    { schemaId, folderId },
    { id: '690001', date: '2024-09-30' },
    [2n ** 63n - 1n, 2n ** 63n - 1n, 2n ** 53n + 1n].map((debit, n) => ({ id: String(690_001 + n), debit })),
  )
})

type Query = Record<string, string | string[]>

const ask = (query: Query, headers: Record<string, string> = {}, method = 'GET') => {
  const url = new URL('/api/v1/mad/balance', stage.service.url)
  for (const [name, value] of Object.entries({ version: '1.0.0', ...query }))
    for (const single of [value].flat()) url.searchParams.append(name, single)
  return download(url.href, { ...stage.company, ...headers }, method)
}

interface Line {
  exercice: string
  date: string
  validated: boolean
  journal_type: string
  account: { producerId: string; number: string; name: string }
  debit: string
  credit: string
}

/** Every movement of the folder, with no condition but the folder. */
async function linesOf(folder: { schemaId: string; folderId: string }): Promise<Line[]> {
  const { rows } = await stage.staff.client.query<Line>(
    `select e.exercice_id as exercice, e.date::text, e.validated_at is not null as validated, j.type as journal_type,
       json_build_object('producerId', a.id::text, 'number', a.number, 'name', a.name) as account,
       m.debit::text, m.credit::text
     from grandlivre.movements m, grandlivre.entries e, grandlivre.journals j, grandlivre.accounts a
     where (m.schema_id, m.folder_id) = ($1, $2) and (e.schema_id, e.folder_id, e.id) = ($1, $2, m.entry_id)
       and (j.schema_id, j.folder_id, j.id) = ($1, $2, e.journal_id)
       and (a.schema_id, a.folder_id, a.id) = ($1, $2, m.account_id)`,
    [folder.schemaId, folder.folderId],
  )
  return rows
}

/** Cents as a number of JSON. */
function inEuro(cents: bigint): string {
  const sign = cents < 0n ? '-' : ''
  const [whole, fraction] = [String(cents < 0n ? -cents / 100n : cents / 100n), cents < 0n ? -cents : cents]
  const decimals = String(fraction % 100n)
    .padStart(2, '0')
    .replace(/0+$/, '')
  return sign + whole + (decimals === '' ? '' : `.${decimals}`)
}

/** The items that the route must send for these movements, as JSON. */
function balanceOf(lines: Line[]): string[] {
  const accounts = new Map<string, Line['account'] & { debit: bigint; credit: bigint }>()
  for (const { account, debit, credit } of lines) {
    const sums = accounts.get(account.producerId) ?? { ...account, debit: 0n, credit: 0n }
    sums.debit += BigInt(debit)
    sums.credit += BigInt(credit)
    accounts.set(account.producerId, sums)
  }
  return [...accounts.values()]
    .toSorted((one, other) => (one.number < other.number ? -1 : 1))
    .map(({ debit, credit, ...account }) => {
      const sums = `"debit":${inEuro(debit)},"credit":${inEuro(credit)},"balance":${inEuro(debit - credit)}`
      return `{"account":${JSON.stringify(account)},${sums}}`
    })
}

const inBooks = ({ validated, journal_type }: Line) => validated && journal_type !== 'OD_EXC'

const selections: [Query, (line: Line) => boolean][] = [
  [{ idExercice: '12' }, ({ exercice }) => exercice === '12'],
  [{ idExercice: '0011' }, ({ exercice }) => exercice === '11'],
  [{ idExercice: '13' }, ({ exercice }) => exercice === '13'],
  // Touches two exercices.
  [
    { startDate: '2024-03-15', endDate: '2024-10-20' },
    ({ date }) => date >= '2024-03-15' && date <= '2024-10-20',
  ],
  [{ startDate: '2024-09-30', endDate: '2024-09-30' }, ({ date }) => date === '2024-09-30'],
  [{ startDate: '1999-01-01', endDate: '1999-12-31' }, () => false],
]

const classes: [Query, (number: string) => boolean][] = [
  [{}, () => true],
  [{ classAccount: '6' }, (number) => number.startsWith('6')],
  [{ classAccount: ['60%,401b', ' 512'] }, (number) => /^(60|401B|512)/.test(number)],
  [{ classAccount: '99' }, () => false],
]

describe('the balance of a selection', () => {
  test('has the sums of its movements, exactly, for every selection and class of accounts', async () => {
    const lines = await linesOf(folders.first)
    let filled = 0
    for (const [query, isSelected] of selections)
      for (const [roots, isOfClass] of classes) {
        const items = balanceOf(
          lines.filter((line) => inBooks(line) && isSelected(line) && isOfClass(line.account.number)),
        )
        const answer = await ask({ ...query, ...roots })
        expect([answer.status, answer.text], JSON.stringify({ ...query, ...roots })).toEqual([
          200,
          `[${items.join(',')}]`,
        ])
        expect(answer.trailers).toEqual({
          'x-row-count': String(items.length),
          'x-content-sha256': answer.sha256,
        })
        if (items.length > 0) filled++
      }
    expect(filled).toBeGreaterThan(8)
    const whole = await ask({ idExercice: '12' })
    expect(whole.json.length).toBeGreaterThan(250)
    // The sum of two amounts of 2^63 - 1 cents and one of 2^53 + 1, and of small ones.
    expect(whole.text).toContain('"debit":184557512729645306.')
    const numbers: string[] = whole.json.map(({ account }: { account: { number: string } }) => account.number)
    expect(numbers).toEqual(numbers.toSorted())
  })

  test('leaves out drafts and journals beside the books, which the ledger of this test has', async () => {
    const lines = (await linesOf(folders.first)).filter(({ exercice }) => exercice === '12')
    const { text } = await ask({ idExercice: '12' })
    const isAnswer = (shown: Line[]) => text === `[${balanceOf(shown).join(',')}]`
    expect(isAnswer(lines.filter(inBooks))).toBe(true)
    expect(isAnswer(lines.filter(({ validated }) => validated))).toBe(false)
    expect(isAnswer(lines.filter(({ journal_type }) => journal_type !== 'OD_EXC'))).toBe(false)
  })

  test('has the same sums as the movements that the service streams', async () => {
    const url = `${stage.service.url}/api/v1/mad/movements?version=1.0.0&idExercice=11`
    const { text } = await download(url, { ...stage.company, Accept: 'application/x-ndjson' })
    const sums = new Map<string, number>()
    for (const line of text.trimEnd().split('\n')) {
      const { account, value, entry } = JSON.parse(line)
      if (entry.journal.type === 'OD Extracomptable') continue
      sums.set(account.number, (sums.get(account.number) ?? 0) - Math.round(value.amount * 100))
    }
    const { json } = await ask({ idExercice: '11' })
    const found = json.map(({ account, balance }: { account: { number: string }; balance: number }) => [
      account.number,
      Math.round(balance * 100),
    ])
    expect(new Map(found)).toEqual(sums)
  })

  test('is one account per line in NDJSON, in every encoding', async () => {
    const items = balanceOf(
      (await linesOf(folders.first)).filter((line) => inBooks(line) && line.exercice === '12'),
    )
    for (const encoding of ['identity', 'gzip', 'zstd']) {
      const headers = { Accept: 'application/x-ndjson', 'Accept-Encoding': encoding }
      const answer = await ask({ idExercice: '12' }, headers)
      expect(answer.text).toBe(items.map((item) => `${item}\n`).join(''))
      expect(answer.headers['content-encoding']).toBe(encoding === 'identity' ? undefined : encoding)
    }
  })

  test('is that of one folder', async () => {
    const lines = await linesOf(folders.sameFirm)
    const items = balanceOf(lines.filter((line) => inBooks(line) && line.exercice === '12'))
    const { text } = await ask({ idExercice: '12' }, { ...stage.firm, 'society-id': '112' })
    expect(text).toBe(`[${items.join(',')}]`)
  })

  test('has an ETag that lasts until the ledger changes', async () => {
    const first = await ask({ idExercice: '12' })
    const etag = String(first.headers.etag)
    const again = await ask({ idExercice: '12' }, { 'If-None-Match': etag })
    expect([again.status, again.bytes.length, again.headers.etag]).toEqual([304, 0, etag])
    for (const query of [{ idExercice: '11' }, { idExercice: '12', classAccount: '6' }] as Query[])
      expect((await ask(query)).headers.etag).not.toBe(etag)
    await stage.staff.client.query(
      `update grandlivre.accounts set name = name || '.' where schema_id = 100 and folder_id = 111 and id = 101`,
    )
    expect((await ask({ idExercice: '12' }, { 'If-None-Match': etag })).status).toBe(200)
    expect((await ask({ idExercice: '12' }, { 'If-Match': etag })).status).toBe(412)
  })
})

describe('a request for a balance', () => {
  const year = { idExercice: '12' }
  test.each([
    [{}, 400, ['idExercice']],
    [{ idExercice: '' }, 400, ['idExercice']],
    [{ idExercice: ['11', '12'] }, 400, ['idExercice']],
    [{ idExercice: '1'.repeat(17) }, 400, ['idExercice']],
    [{ ...year, startDate: '2024-07-01' }, 400, ['startDate']],
    [{ startDate: '2024-07-01' }, 400, ['endDate']],
    [{ startDate: '2024-07-01', endDate: '2025-07-01' }, 400, ['endDate']],
    [{ startDate: '2024-02-30', endDate: '2024-03-01' }, 400, ['startDate']],
    [{ ...year, classAccount: '' }, 400, ['classAccount']],
    [{ ...year, classAccount: '6.1' }, 400, ['classAccount']],
    [{ ...year, version: '1' }, 400, ['version']],
    [
      {
        ...year,
        draft: '',
        dateFilter: 'document',
        source: 'FEC',
        journalIds: '31',
        lettering: 'none',
        after: '3',
      },
      400,
      ['after', 'dateFilter', 'draft', 'journalIds', 'lettering', 'source'],
    ],
  ] as [Query, number, string[]][])('is refused for %j with %i', async (query, status, parameters) => {
    const answer = await ask(query)
    expect([answer.status, answer.json.error.code]).toEqual([status, 'ERR-VALIDATION'])
    const issues: { parameter: string }[] = answer.json.error.details.issues
    expect(issues.map(({ parameter }) => parameter).toSorted()).toEqual(parameters)
  })

  test('of an exercice that the folder does not have gets 404', async () => {
    await stage.staff.client.query(
      `insert into grandlivre.exercices (schema_id, folder_id, id, start_date, end_date)
       values (100, 112, 777, '2020-01-01', '2020-12-31')`,
    )
    for (const idExercice of ['0', '1', '777', '9'.repeat(16)]) {
      const { status, json } = await ask({ idExercice })
      expect([status, json.error.code]).toEqual([404, 'ERR-EXERCICE-NOT-FOUND'])
    }
    const { status, json } = await ask(year, { 'society-id': '211' })
    expect([status, json.error.code]).toEqual([403, 'ERR-FORBIDDEN-ACCESS'])
  })

  test('by HEAD gets the headers only; other methods and media types are refused', async () => {
    const { status, bytes, headers } = await ask(year, {}, 'HEAD')
    expect([status, bytes.length]).toEqual([200, 0])
    const disposition = String(headers['content-disposition'])
    expect(decodeURIComponent(disposition.split("UTF-8''")[1]!)).toBe(
      `${folderReference}_balance_2024-07-01_2025-06-30.json`,
    )
    expect((await ask(year, { Accept: 'text/csv' })).status).toBe(406)
    expect((await ask(year, {}, 'POST')).headers.allow).toBe('GET, HEAD')
  })
})
