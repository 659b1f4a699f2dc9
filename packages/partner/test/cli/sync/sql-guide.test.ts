/** What docs/guides/sql.md says of the tables and views, in both databases. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { flatColumns } from '../../../../../src/formats/flat/columns.ts'
import { exerciceIds } from '../../../../../test/support/changes/random-ledger.ts'
import { request } from '../../../../../test/support/service.ts'
import { openTestCopy, type SyncStage, setSyncStage } from '../../support/cli/sync-stage.ts'

type Row = Record<string, unknown>
type Ask = (sql: string) => Promise<Row[]>

const guide = readFileSync(join(import.meta.dirname, '../../../../../docs/guides/sql.md'), 'utf8')
const queries = [...guide.matchAll(/<!-- sql -->\n```sql\n(.*?)```/gs)].map(([, query]) => query!)

let stage: SyncStage
const asks: Partial<Record<'sqlite' | 'postgres', Ask>> = {}
const ends: (() => unknown)[] = []
beforeAll(async () => {
  stage = await setSyncStage()
  // Shares of turnover.
  await stage.change(
    'update movements set account_id = 105 where schema_id = 100 and folder_id = 111 and shares is not null',
  )
  for (const kind of ['sqlite', 'postgres'] as const) {
    const address = stage.address(kind)
    const copy = await openTestCopy(stage, address)
    await copy.bring()
    ends.push(() => copy.target.close())
    if (kind === 'sqlite') {
      // While the sync has the file open.
      const database = new DatabaseSync(address, { readOnly: true })
      ends.push(() => database.close())
      asks.sqlite = async (sql) => database.prepare(sql).all() as Row[]
    } else {
      const client = new pg.Client({ connectionString: address.replace(/[?&]schema=\w+/, '') })
      await client.connect()
      await client.query(`set search_path to ${new URL(address).searchParams.get('schema')}`)
      ends.push(() => client.end())
      asks.postgres = async (sql) => (await client.query(sql)).rows
    }
  }
})
afterAll(async () => {
  for (const end of ends) await end()
  await stage.close()
})

describe.each(['sqlite', 'postgres'] as const)('in %s', (kind) => {
  const ask: Ask = (sql) => asks[kind]!(sql)

  test('the queries of the guide have answers', async () => {
    expect(queries.length).toBe(3)
    for (const query of queries) expect((await ask(query)).length, query).toBeGreaterThan(0)
  })

  test('movements have the columns of the CSV file', async () => {
    const [row] = await ask('select * from movements limit 1')
    const names = flatColumns.map(({ name }) => name)
    expect(Object.keys(row!).slice(0, names.length)).toEqual(names)
  })

  test('balances are those of the service, to the cent', async () => {
    for (const exercice of exerciceIds) {
      const path = `/api/v1/mad/balance?version=1.0.0&idExercice=${exercice}`
      const { body } = await request(`${stage.service.url}${path}`, {
        Authorization: `Bearer ${stage.env['GRANDLIVRE_TOKEN']}`,
        'X-Third-Party-Secret': stage.env['GRANDLIVRE_SECRET']!,
      })
      const rows = await ask(
        `select account_number, debit, credit, balance from account_balances where exercice_id = ${exercice}
         order by account_number`,
      )
      expect(
        rows.map((row) => [
          row['account_number'],
          ...['debit', 'credit', 'balance'].map((name) => Number(row[name])),
        ]),
      ).toEqual(
        body.map(
          ({ account, debit, credit, balance }: { account: { number: string } } & Record<string, number>) => [
            account.number,
            debit,
            credit,
            balance,
          ],
        ),
      )
    }
  })

  test('what is open of customers is the sum of their open items', async () => {
    const [aged] = await ask('select sum(receivable) as open, count(*) as accounts from aged_receivables')
    const [items] = await ask(
      `select sum(debit) - sum(credit) as open, count(distinct exercice_id || '-' || account_id) as accounts
       from open_items where account_number like '411%'`,
    )
    expect(Number(aged!['accounts'])).toBeGreaterThan(0)
    expect(Number(aged!['accounts'])).toBe(Number(items!['accounts']))
    expect(Number(aged!['open'])).toBeCloseTo(Number(items!['open']), 2)
  })
})
