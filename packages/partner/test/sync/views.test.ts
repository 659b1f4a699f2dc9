/** The views of a copy, in SQLite and in PostgreSQL. Their results are compared with results computed by hand. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { forTests } from '../../../../test/support/for-tests.ts'
import type { LedgerTableName } from '../../../contract/src/ledger-tables.ts'
import type { Copy } from '../../src/sync/copy.ts'
import { openPostgres } from '../../src/sync/postgres/postgres-copy.sql.ts'
import { openSqlite } from '../../src/sync/sqlite/sqlite-copy.sql.ts'
import { sqliteDialect, viewsOf } from '../../src/sync/views.sql.ts'
import { setCopyPlaces } from '../support/sync/copies.ts'
import { type CopyKind, copyKinds, lineOf } from '../support/sync/rows.ts'

const guide = readFileSync(join(import.meta.dirname, '../../../../docs/guides/sql.md'), 'utf8')
const queries = [...guide.matchAll(/<!-- sql -->\n```sql\n(.*?)```/gs)].map(([, query]) => query!)

type Row = Record<string, string>
type Ask = (sql: string) => Promise<Record<string, unknown>[]>

/** Days from today, so that ages are always the same. */
const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
const thisYear = { start_date: day(-100), end_date: day(200) }

const books: Partial<Record<LedgerTableName, Row[]>> = {
  exercices: [
    { exercice_id: '12', months: '12', state: 'open', ...thisYear },
    { exercice_id: '11', months: '12', state: 'closed', start_date: day(-500), end_date: day(-101) },
    { exercice_id: '13', months: '12', state: 'open', start_date: day(201), end_date: day(566) },
  ],
  vats: [
    { vat_id: '1', vat_code: 'V20', rate: '20.000000', collected_account_id: '445' },
    { vat_id: '2', vat_code: 'A20', rate: '20.000000', deductible_account_id: '446' },
    { vat_id: '3', vat_code: 'B20', rate: '20.000000', deductible_account_id: '446' },
    { vat_id: '4', vat_code: 'C', rate: '10.000000', deductible_account_id: '447' },
    { vat_id: '5', vat_code: 'C', deductible_account_id: '447' },
  ],
  movements: [
    ...entry('1', { entry_date: '2026-01-10', journal_type: 'VTE', journal_code: 'VE', journal_id: '1' }, [
      {
        account_number: '4110001',
        account_name: 'Dupont',
        account_id: '411',
        debit: '120.10',
        due_date: day(-40),
      },
      {
        ...{ account_number: '706', account_name: 'Ventes', account_id: '706', credit: '100.10' },
        analytics:
          '[{"axis_code":"A","section_code":"S1","amount":60.05,"rate":60},{"axis_code":"A","section_code":"S2","amount":40.05,"rate":40}]',
      },
      { account_number: '44571', account_name: 'TVA', account_id: '445', credit: '20.00' },
    ]),
    // The same account on an earlier day, by an entry with a later id.
    ...entry('2', { entry_date: '2026-01-05', journal_type: 'BQ', journal_code: 'BQ', journal_id: '2' }, [
      { account_number: '512', account_name: 'Banque', account_id: '512', debit: '0.20' },
      {
        account_number: '4110001',
        account_name: 'Dupont',
        account_id: '411',
        credit: '0.20',
        lettering_state: 'complete',
      },
    ]),
    ...entry('3', { entry_date: '2026-02-01', journal_type: 'ACH', journal_code: 'HA', journal_id: '3' }, [
      {
        account_number: '4010001',
        account_name: 'EDF',
        account_id: '401',
        credit: '11.00',
        due_date: day(3),
      },
      { account_number: '606', account_name: 'Achats', account_id: '606', debit: '10.00' },
      { account_number: '44566', account_name: 'TVA ded.', account_id: '446', debit: '0.60' },
      { account_number: '44567', account_name: 'TVA ded. 2', account_id: '447', debit: '0.40' },
    ]),
    ...entry(
      '4',
      { entry_date: '2026-02-02', journal_type: 'VTE', journal_code: 'VE', journal_id: '1', draft: 't' },
      [{ account_number: '4110001', account_name: 'Dupont', account_id: '411', debit: '5.00' }],
    ),
    ...entry('5', { entry_date: '2026-02-03', journal_type: 'OD_EXC', journal_code: 'EX', journal_id: '4' }, [
      { account_number: '706', account_name: 'Ventes', account_id: '706', credit: '7.00' },
      { account_number: '4110001', account_name: 'Dupont', account_id: '411', debit: '7.00' },
    ]),
  ],
}
/** Two firms; the last folder is gone. */
const folders = [
  { society: '1', firm: '90', gone: null },
  { society: '2', firm: '91', gone: null },
  { society: '3', firm: '90', gone: '2026-01-01T00:00:00.000Z' },
]

function entry(id: string, shared: Row, movements: Row[]): Row[] {
  return movements.map((movement, i) => ({
    ...{
      entry_id: id,
      movement_id: `${id}${i}`,
      exercice_id: '12',
      draft: 'f',
      debit: '0.00',
      credit: '0.00',
    },
    ...{ lettering_state: 'none', ...shared, ...movement },
  }))
}

const places = forTests(setCopyPlaces)
const client = forTests(async () => {
  await fill(await openPostgres(places.database.ownerUrl))
  const opened = new pg.Client({ connectionString: places.database.ownerUrl })
  await opened.connect()
  await opened.query('set search_path to grandlivre_ledger')
  return opened
})
const sqlite = forTests(async () => {
  const file = places.newAddress('SQLite')
  await fill(await openSqlite(file))
  return new DatabaseSync(file)
})
const asks: Record<CopyKind, Ask> = {
  SQLite: async (sql) => sqlite.prepare(sql).all() as Record<string, unknown>[],
  PostgreSQL: async (sql) => (await client.query(sql)).rows,
}

async function fill(copy: Copy): Promise<void> {
  for (const { society, firm, gone } of folders) {
    await copy.note([society], { firm_id: firm, firm_name: `Firm ${firm}`, gone_at: gone })
    await copy.begin(society)
    await copy.table('folders')
    await copy.rows(Buffer.from(lineOf('folders', { society_id: society, name: `Society ${society}` })))
    for (const [table, rows] of Object.entries(books) as [LedgerTableName, Row[]][]) {
      await copy.table(table)
      await copy.rows(Buffer.from(rows.map((row) => lineOf(table, row)).join('')))
    }
    await copy.commit({ cursor: 'c' }, null)
  }
  await copy.close()
}

/** Results of a view for folder 1, as texts: numbers as both databases show them. */
const expected: Record<string, { of: string; order: string; rows: string[] }> = {
  named_exercices: {
    of: 'exercice_id, exercice_name, state',
    order: 'start_date',
    rows: ['11 N-1 closed', '12 N open', '13 N+1 open'],
  },
  account_balances: {
    of: 'exercice_name, account_number, debit, credit, balance',
    order: 'account_number',
    rows: [
      'N 4010001 0 11 -11',
      'N 4110001 120.1 0.2 119.9',
      'N 44566 0.6 0 0.6',
      'N 44567 0.4 0 0.4',
      'N 44571 0 20 -20',
      'N 512 0.2 0 0.2',
      'N 606 10 0 10',
      'N 706 0 100.1 -100.1',
    ],
  },
  general_ledger: {
    of: 'account_number, entry_id, debit, credit, balance',
    order: 'account_number, entry_date, entry_id, movement_id',
    rows: [
      '4010001 3 0 11 -11',
      '4110001 2 0 0.2 -0.2',
      '4110001 1 120.1 0 119.9',
      '44566 3 0.6 0 0.6',
      '44567 3 0.4 0 0.4',
      '44571 1 0 20 -20',
      '512 2 0.2 0 0.2',
      '606 3 10 0 10',
      '706 1 0 100.1 -100.1',
    ],
  },
  firm_balances: {
    of: 'firm_name, society_name, exercice_name, turnover, result, bank, cash, receivable, payable, vat_due',
    order: 'exercice_id',
    rows: ['Firm 90 Society 1 N 100.1 90.1 0.2 0 119.9 11 19'],
  },
  journal_totals: {
    of: 'journal_code, month, entries, debit, credit',
    order: 'journal_code',
    rows: ['BQ 2026-01 1 0.2 0.2', 'EX 2026-02 1 7 7', 'HA 2026-02 1 11 11', 'VE 2026-01 1 120.1 120.1'],
  },
  vat_by_month: {
    of: 'month, account_number, vat_code, rate, debit, credit, balance',
    order: 'month, account_number',
    rows: ['2026-01 44571 V20 20 0 20 -20', '2026-02 44566 - 20 0.6 0 0.6', '2026-02 44567 C - 0.4 0 0.4'],
  },
  open_items: {
    of: 'account_number, entry_id, days_overdue, debit, credit',
    order: 'account_number',
    rows: ['4010001 3 -3 0 11', '4110001 1 40 120.1 0'],
  },
  aged_receivables: {
    of: 'account_name, receivable, not_due, days_1_30, days_31_60, days_61_90, days_over_90',
    order: 'account_id',
    rows: ['Dupont 120.1 0 0 120.1 0 0'],
  },
  aged_payables: {
    of: 'account_name, payable, not_due, days_1_30, days_31_60, days_61_90, days_over_90',
    order: 'account_id',
    rows: ['EDF 11 11 0 0 0 0'],
  },
  analytic_shares: {
    of: 'account_number, axis_code, section_code, debit, credit, rate',
    order: 'section_code',
    rows: ['706 A S1 0 60.05 60', '706 A S2 0 40.05 40'],
  },
  section_totals: {
    of: 'axis_code, section_code, account_class, debit, credit, balance',
    order: 'section_code',
    rows: ['A S1 70 0 60.05 -60.05', 'A S2 70 0 40.05 -40.05'],
  },
  unbalanced_entries: {
    of: 'entry_id, debit, credit, difference',
    order: 'entry_id',
    rows: ['4 5 0 5'],
  },
}

const asText = (value: unknown): string => {
  if (value === null) return '-'
  return /^-?\d+\.\d+$/.test(String(value)) ? String(Number(value)) : String(value)
}

describe.each(copyKinds)('in %s', (kind) => {
  test.each(Object.entries(expected))('the view %s shows the ledger', async (view, { of, order, rows }) => {
    const found = await asks[kind](`select ${of} from ${view} where society_id = 1 order by ${order}`)
    expect(found.map((row) => Object.values(row).map(asText).join(' '))).toEqual(rows)
    // Each firm has its own folders, and the folder that is gone is in no view.
    const counts = await asks[kind](
      `select firm_id, society_id, count(*) as rows from ${view} group by firm_id, society_id order by society_id`,
    )
    expect(counts.map((row) => Object.values(row).map(Number))).toEqual([
      [90, 1, rows.length],
      [91, 2, rows.length],
    ])
  })

  test('every query in the guide returns rows', async () => {
    expect(queries).toHaveLength(4)
    for (const query of queries) expect((await asks[kind](query)).length, query).toBeGreaterThan(0)
  })

  test('these tests cover every view', () => {
    expect(
      viewsOf(sqliteDialect)
        .map(({ name }) => name)
        .sort(),
    ).toEqual(Object.keys(expected).sort())
  })
})
