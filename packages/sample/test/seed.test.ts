import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowCounts } from '../../../test/support/ledgers/ledger-content.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/support/servers/database.ts'
import { letteringCode } from '../src/made-up/lines.ts'
import words from '../src/made-up/words.json' with { type: 'json' }
import { type SeededFolder, seed } from '../src/seed.ts'

const movements = 20_000
const year = 2025

let database: TestDatabase
let client: pg.Client
let folder: SeededFolder
const progress: [number, number][] = []

beforeAll(async () => {
  database = await createTestDatabase()
  folder = await seed(database.ownerUrl, {
    movements,
    year,
    reference: 'FIRST',
    onProgress: (...call) => progress.push(call),
  })
  client = new pg.Client({ connectionString: database.ownerUrl })
  await client.connect()
  await client.query('set search_path = grandlivre')
})

afterAll(async () => {
  await client.end()
  await database.drop()
})

/** Runs a query whose $1 is the folder. */
// biome-ignore lint/suspicious/noExplicitAny: each test knows its columns.
async function rowsOf(sql: string, folderId = folder.folderId): Promise<any[]> {
  return (await client.query(sql, [folderId])).rows
}

/** Finds entries that do not balance, or have fewer than two movements. */
const unbalanced = (folderId: string) =>
  rowsOf(
    `select e.id from entries e left join movements m on (m.schema_id, m.folder_id, m.entry_id) = (e.schema_id, e.folder_id, e.id)
     where e.folder_id = $1 group by e.id having sum(m.debit) is distinct from sum(m.credit) or count(m.id) < 2`,
    folderId,
  )

test('a seed makes exactly the requested number of movements, and returns the ids and totals of the folder', async () => {
  const [counts] = await rowsOf(`select
    (select count(*)::integer from movements where folder_id = $1) as movements,
    (select count(*)::integer from entries where folder_id = $1) as entries,
    (select count(*)::integer from accounts where folder_id = $1) as accounts`)
  expect(folder.counts).toEqual(counts)
  expect(counts.movements).toBe(movements)
  expect(await unbalanced(folder.folderId)).toEqual([])
  const found = await rowsOf(
    'select schema_id as "schemaId", firm_id as "firmId", id as "folderId" from folders where id = $1',
  )
  expect(found).toEqual([{ schemaId: folder.schemaId, firmId: folder.firmId, folderId: folder.folderId }])
  expect(
    await rowsOf(
      `select id, start_date::text as start, end_date::text as end from exercices where folder_id = $1 order by start_date`,
    ),
  ).toEqual(folder.exercices)
  expect(progress.at(-1)).toEqual([movements, movements])
})

test.each([10, 11, 12, 13, 17, 50, 99, 399, 400, 401, 1_234])(
  'a seed of %i movements balances',
  async (count) => {
    const small = await seed(database.ownerUrl, { movements: count, year, reference: `SMALL-${count}` })
    const [found] = await rowsOf(
      'select count(*)::integer as count, sum(debit - credit)::integer as balance from movements where folder_id = $1',
      small.folderId,
    )
    expect(found).toEqual({ count, balance: 0 })
    expect(await unbalanced(small.folderId)).toEqual([])
  },
)

test.each([9, 0, -1, 10.5, 5_000_001, Number.NaN])('a seed of %d movements is refused', async (count) => {
  await expect(seed(database.ownerUrl, { movements: count })).rejects.toThrow(
    'whole number from 10 to 5000000',
  )
})

test('the shares of a line add up to its amount and to 100 % on each axis', async () => {
  const [counted] = await rowsOf(`
    with share as (
      select m.id, m.debit + m.credit as amount, number,
        m.shares[3 * number - 2] as section_id, m.shares[3 * number - 1] as part, m.shares[3 * number] as rate
      from movements m, generate_series(1, array_length(m.shares, 1) / 3) number
      where m.folder_id = $1
    ), by_axis as (
      select share.id, amount, axis_id, sum(part) as parts, sum(rate) as rates, count(*) as sections,
        count(distinct section_id) as different, max(number) - min(number) + 1 as span
      from share left join sections s on s.folder_id = $1 and s.id = section_id group by 1, 2, 3
    )
    select count(distinct id)::integer as lines, count(distinct axis_id)::integer as axes, max(sections)::integer as most,
      count(*) filter (where axis_id is null or parts <> amount or rates <> 1000000)::integer as wrong,
      count(*) filter (where different <> sections or span <> sections)::integer as apart_or_repeated
    from by_axis`)
  expect(counted).toMatchObject({ axes: 2, most: 3, wrong: 0, apart_or_repeated: 0 })
  expect(counted.lines).toBeGreaterThan(movements / 5)
})

test('complete letterings balance on their account within their year, partial ones do not', async () => {
  const groups = await rowsOf(`
    select lettering_state as state, count(*)::integer as codes,
      count(*) filter (where balance = 0)::integer as balanced, min(lines)::integer as lines
    from (
      select account_id, exercice_id, lettering_code, min(lettering_state) as lettering_state,
        sum(debit - credit) as balance, count(*) as lines, count(distinct lettering_state) as states
      from movements where folder_id = $1 and lettering_state <> 'none' group by 1, 2, 3
    ) code group by 1 order by 1`)
  const [complete, partial] = groups
  expect(complete).toMatchObject({ state: 'complete', balanced: complete.codes, lines: 2 })
  expect(partial).toMatchObject({ state: 'partial', balanced: 0, lines: 2 })
  expect(complete.codes).toBeGreaterThan(movements / 20)
  expect(partial.codes).toBeGreaterThan(movements / 500)
})

test('lettering codes continue after ZZZ without repeating', () => {
  const codes = [0, 1, 25, 26, 26 ** 3 - 1, 26 ** 3].map(letteringCode)
  expect(codes.join(' ')).toBe('AAA AAB AAZ ABA ZZZ AAAA')
})

test('nearly all movements are in the later year, spread over its months in the order of ids', async () => {
  const months = await rowsOf(`
    select to_char(date, 'YYYY-MM') as month, count(*)::integer as count from movements m
    join entries e on e.folder_id = m.folder_id and e.id = m.entry_id
    where m.folder_id = $1 and date >= '${year}-01-01' group by 1 order by 1`)
  expect(months.length).toBe(12)
  for (const { count } of months) {
    expect(count).toBeGreaterThan((movements / 12) * 0.85)
    expect(count).toBeLessThan((movements / 12) * 1.15)
  }
  const backwards = await rowsOf(`
    select id from (select id, date, lag(date) over (order by id) as before from entries where folder_id = $1) entry
    where date < before`)
  expect(backwards).toEqual([])
  const outside = await rowsOf(`
    select e.id from entries e join exercices x on x.folder_id = e.folder_id and x.id = e.exercice_id
    where e.folder_id = $1 and date not between start_date and end_date`)
  expect(outside).toEqual([])
})

test('the year opens with the closing balances of the year before', async () => {
  const [before, current] = folder.exercices
  const balances = (exercice: string, condition: string) =>
    rowsOf(`
      select a.number, sum(debit - credit) as balance from movements m
      join accounts a on a.folder_id = m.folder_id and a.id = m.account_id
      join entries e on e.folder_id = m.folder_id and e.id = m.entry_id
      where m.folder_id = $1 and m.exercice_id = ${exercice} and ${condition}
      group by a.number having sum(debit - credit) <> 0 order by a.number`)
  const closing = await balances(before!.id, `a.number < '6'`)
  const opening = await balances(current!.id, `source = 'AN' and a.number not in ('120000', '129000')`)
  expect(opening.length).toBeGreaterThan(5)
  expect(opening).toEqual(closing)
})

test('drafts and attachments are as frequent as in real books, and currencies, sources and time zones vary', async () => {
  const [found] = await rowsOf(`select
    count(*)::integer as entries,
    count(*) filter (where validated_at is null)::integer as drafts,
    count(*) filter (where attachments is not null)::integer as attached,
    count(*) filter (where currency <> 'EUR')::integer as foreign_currency,
    count(*) filter (where (currency <> 'EUR') <> (rate is not null))::integer as rate_wrong,
    count(*) filter (where (source = 'API') <> (third_party_id is not null))::integer as sender_wrong,
    count(*) filter (where partner_metadata is not null)::integer as with_metadata,
    count(*) filter (where comment is not null)::integer as commented,
    count(*) filter (where accounted_at <> date)::integer as accounted_later,
    count(*) filter (where (created_at at time zone 'UTC')::date <> (created_at at time zone 'Europe/Paris')::date)::integer as another_day_in_paris,
    count(distinct source)::integer as sources, count(distinct journal_id)::integer as journals
    from entries where folder_id = $1`)
  expect(found.drafts / found.entries).toBeGreaterThan(0.005)
  expect(found.drafts / found.entries).toBeLessThan(0.02)
  expect(found.attached / found.entries).toBeGreaterThan(0.01)
  expect(found.attached / found.entries).toBeLessThan(0.03)
  expect(movements / found.entries).toBeGreaterThan(2.5)
  expect(movements / found.entries).toBeLessThan(3.5)
  expect(found).toMatchObject({ rate_wrong: 0, sender_wrong: 0, journals: 11 })
  const { foreign_currency, with_metadata, commented, accounted_later, another_day_in_paris } = found
  const some = [foreign_currency, with_metadata, commented, accounted_later, another_day_in_paris]
  expect(Math.min(...some)).toBeGreaterThan(20)
  expect(found.sources).toBeGreaterThan(20)
})

test('third-party accounts have companies and employees, and IBANs have valid check digits', async () => {
  const [found] = await rowsOf(`select
    count(*) filter (where number ~ '^4[01]1' and c.account_id is null)::integer as without_company,
    count(*) filter (where number ~ '^421' and e.account_id is null)::integer as without_employee
    from accounts a
    left join companies c on c.folder_id = a.folder_id and c.account_id = a.id
    left join employees e on e.folder_id = a.folder_id and e.account_id = a.id
    where a.folder_id = $1`)
  expect(found).toEqual({ without_company: 0, without_employee: 0 })
  const ibans = await rowsOf(
    'select unnest(ibans) as iban from companies where folder_id = $1 union select iban from banks where folder_id = $1',
  )
  expect(ibans.length).toBeGreaterThan(3)
  for (const { iban } of ibans) expect(BigInt(`${iban.slice(4)}1527${iban.slice(2, 4)}`) % 97n).toBe(1n)
})

test('descriptions include the texts that break careless readers', async () => {
  const rows = await rowsOf('select distinct description from movements where folder_id = $1')
  const descriptions = rows.map((row) => row.description)
  const isThere = (hostile: string) => descriptions.some((description) => description.endsWith(hostile))
  expect(words.hostileTexts.filter((hostile) => !isThere(hostile))).toEqual([])
})

/** All entries and movements of a folder in order, with natural keys in place of ids. */
const ledgerDigest = `
  select md5(string_agg(line, '|' order by entry_id, id)) as digest from (
    select m.entry_id, m.id, concat_ws('~', e.date, e.due_date, e.accounted_at, e.created_at, e.validated_at, e.source,
      e.currency, e.rate, e.comment, e.partner_metadata, e.attachments, j.code, a.number, a.name, m.description,
      m.due_date, m.free_number, m.invoice_number, m.debit, m.credit, p.code, m.lettering_state, m.lettering_code,
      m.attachments, (select string_agg(s.code || '/' || m.shares[n + 1] || '/' || m.shares[n + 2], ',' order by n)
        from generate_series(1, array_length(m.shares, 1), 3) n join sections s on s.folder_id = $1 and s.id = m.shares[n])
    ) as line
    from movements m
    join entries e on e.folder_id = $1 and e.id = m.entry_id
    join journals j on j.folder_id = $1 and j.id = e.journal_id
    join accounts a on a.folder_id = $1 and a.id = m.account_id
    left join payments p on p.folder_id = $1 and p.id = m.payment_id
    where m.folder_id = $1
  ) row`

test('the same seed gives the same ledger apart from ids, and another seed a different one', async () => {
  const digestOf = async (reference: string, number: number) => {
    const plan = { movements: 3_000, year, reference, seed: number }
    const { folderId } = await seed(database.ownerUrl, plan)
    return (await rowsOf(ledgerDigest, folderId))[0].digest
  }
  const digest = await digestOf('SAME-A', 7)
  expect(digest).toMatch(/^[0-9a-f]{32}$/)
  expect(await digestOf('SAME-B', 7)).toBe(digest)
  expect(await digestOf('OTHER', 8)).not.toBe(digest)
})

test('a seed with an existing reference is refused without a change, or replaces the folder and keeps its ids', async () => {
  const options = { movements: 1_000, year, reference: 'AGAIN' }
  const first = await seed(database.ownerUrl, options)
  const [{ digest }] = await rowsOf(ledgerDigest, first.folderId)
  await expect(seed(database.ownerUrl, { ...options, seed: 2 })).rejects.toThrow(
    `The folder ${first.folderId} has the reference AGAIN already`,
  )
  expect(await rowsOf(ledgerDigest, first.folderId)).toEqual([{ digest }])

  const again = await seed(database.ownerUrl, { ...options, replace: true })
  const { schemaId, firmId, folderId } = first
  expect(again).toMatchObject({ schemaId, firmId, folderId, counts: first.counts })
  expect(await rowsOf(ledgerDigest, folderId)).toEqual([{ digest }])
  expect(
    (await rowsOf('select count(*)::integer as count from movements where folder_id = $1', folderId))[0]
      .count,
  ).toBe(1_000)
})

test('a seed that fails halfway leaves neither rows nor events', async () => {
  const counts = async () => [
    await rowCounts(client),
    (await client.query('select count(*)::int as events from events')).rows,
  ]
  const before = await counts()
  const failure = new Error('the terminal went away')
  const failing = seed(database.ownerUrl, {
    movements: 30_000,
    year,
    reference: 'HALF',
    onProgress: (done) => {
      if (done > 10_000) throw failure
    },
  })
  await expect(failing).rejects.toBe(failure)
  expect(await counts()).toEqual(before)
})

test('a seed updates the statistics of the tables', async () => {
  const { rows } = await client.query(`select count(*)::integer as count from pg_stats
    where schemaname = 'grandlivre' and tablename in ('movements', 'entries') and attname in ('folder_id', 'exercice_id')`)
  expect(rows[0].count).toBe(4)
})
