/** Debit, credit and balance by account, against sums that the test computes; folder-routes.test.ts has the rest of the route. */
import { beforeAll, expect, test } from 'vitest'
import { download, madUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { addEntry } from '../../support/ledgers/ledger.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

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

const ask = (query: Query) => download(madUrl(stage.service.url, 'balance', query), stage.company)

interface Line {
  exercice: string
  date: string
  validated: boolean
  journal_type: string
  account: { producerId: string; number: string; name: string }
  debit: string
  credit: string
}

/** Reads every movement of the folder. */
async function linesOfFolder(): Promise<Line[]> {
  const { rows } = await stage.staff.client.query<Line>(
    `select e.exercice_id as exercice, e.date::text, e.validated_at is not null as validated, j.type as journal_type,
       json_build_object('producerId', a.id::text, 'number', a.number, 'name', a.name) as account,
       m.debit::text, m.credit::text
     from grandlivre.movements m, grandlivre.entries e, grandlivre.journals j, grandlivre.accounts a
     where (m.schema_id, m.folder_id) = ($1, $2) and (e.schema_id, e.folder_id, e.id) = ($1, $2, m.entry_id)
       and (j.schema_id, j.folder_id, j.id) = ($1, $2, e.journal_id)
       and (a.schema_id, a.folder_id, a.id) = ($1, $2, m.account_id)`,
    [schemaId, folderId],
  )
  return rows
}

/** Writes cents as a JSON number of euros. */
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
  // Overlaps two exercices.
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

test('a balance has the exact sums of its movements, for every selection and class of accounts', async () => {
  const lines = await linesOfFolder()
  // The folder has drafts, and movements in a journal outside the books. A balance leaves both out.
  expect(lines.some(({ validated, journal_type }) => !validated && journal_type !== 'OD_EXC')).toBe(true)
  expect(lines.some(({ validated, journal_type }) => validated && journal_type === 'OD_EXC')).toBe(true)
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
  // The sum of two amounts of 2^63 - 1 cents, one of 2^53 + 1 cents, and small ones.
  expect(whole.text).toContain('"debit":184557512729645306.')
  const numbers: string[] = whole.json.map(({ account }: { account: { number: string } }) => account.number)
  expect(numbers).toEqual(numbers.toSorted())
})
