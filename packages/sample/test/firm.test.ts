/** A made-up firm of several folders, and the corrections of its bookkeeper. */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTransaction } from '../../../src/db/pool.ts'
import { cli } from '../../../test/support/cli.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/support/servers/database.ts'
import { Random } from '../src/made-up/random.ts'
import { correct } from '../src/simulate.ts'

let database: TestDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.ownerUrl, options: '-c search_path=grandlivre', max: 1 })
})
afterAll(async () => {
  await pool.end()
  await database.drop()
})

/** By folder, ascending: number of movements, of unbalanced entries, and a digest of amounts in order. */
const ledgers = async (firmId: string) =>
  (
    await pool.query(
      `select f.id, f.reference, f.ledger_version as version, count(m.id)::integer as movements,
         md5(string_agg(m.debit || '/' || m.credit, ',' order by m.id)) as amounts,
         (select count(*)::integer from (select from movements u where u.folder_id = f.id
           group by u.entry_id having sum(u.debit) <> sum(u.credit)) unbalanced) as unbalanced
       from folders f join movements m on m.folder_id = f.id where f.firm_id = $1 group by f.id, f.reference, f.ledger_version order by f.id`,
      [firmId],
    )
  ).rows

const firmIds = (out: string) => [...out.matchAll(/^Firm (\d+),/gm)].map(([, id]) => id!)
let firstFirm: string

test('seed --folders makes firms with different, balanced ledgers and one firm token each', async () => {
  const words = ['seed', '--folders', '4', '--movements', '400', '--firms', '2']
  const { code, out } = await cli(database.ownerUrl, ...words)
  expect(code).toBe(0)
  const firms = firmIds(out)
  expect(firms).toHaveLength(2)
  firstFirm = firms[0]!
  const found = [...(await ledgers(firms[0]!)), ...(await ledgers(firms[1]!))]
  expect(found.map(({ movements, unbalanced }) => [movements, unbalanced])).toEqual(Array(8).fill([400, 0]))
  expect(new Set(found.map(({ amounts }) => amounts)).size).toBe(8)
  expect(found.slice(0, 2).map(({ reference }) => reference)).toEqual(['SEED-1', 'SEED-2'])
  // There is one partner, whose secret is shown once, and a token for each firm.
  expect(out.match(/^Secret: glv_secret_/gm)).toHaveLength(1)
  expect(out.match(/^Token: glv_firm_/gm)).toHaveLength(2)
  const { rows } = await pool.query('select firm_id, folder_id, level from tokens order by firm_id')
  expect(rows).toEqual(firms.map((firm_id) => ({ firm_id, folder_id: null, level: 'firm' })))
  const events = await pool.query(
    `select folder_id, (select count(*) from entries e where e.folder_id = v.folder_id) = count(*) as each
     from events v where name = 'accountingLineEntry' group by folder_id`,
  )
  expect(events.rows.map(({ each }) => each)).toEqual(Array(8).fill(true))
})

test('--firms needs --folders, which refuses 0 and the options for one folder', async () => {
  const refusal = async (...words: string[]) =>
    (await cli(database.ownerUrl, 'seed', '--movements', '10', ...words)).error
  expect(await refusal('--firms', '2')).toContain('--firms and --partner need --folders')
  expect(await refusal('--folders', '2', '--replace')).toContain('--replace is for one folder')
  expect(await refusal('--folders', '0')).toContain('a number from 1 to 10000')
})

test('corrections of every kind keep entries balanced and give the folder another version', async () => {
  const before = await ledgers(firstFirm)
  const [{ schema_id: schemaId }] = (
    await pool.query('select schema_id from firms where id = $1', [firstFirm])
  ).rows
  const random = new Random(5)
  const done: string[] = []
  for (let round = 0; round < 15; round++)
    for (const { id: folderId } of before)
      done.push((await inTransaction(pool, (client) => correct(client, { schemaId, folderId }, random)))!)
  expect(new Set(done.map((what) => what.replace(/ \d+$/, ''))).size).toBe(6)
  const after = await ledgers(firstFirm)
  for (const [index, ledger] of after.entries()) {
    expect(ledger.unbalanced).toBe(0)
    expect(Number(ledger.version)).toBeGreaterThan(Number(before[index].version))
    expect(ledger.amounts).not.toBe(before[index].amounts)
  }
  const letterings = await pool.query(
    `select account_id from movements where folder_id = any ($1) and lettering_state = 'complete'
     group by folder_id, exercice_id, account_id, lettering_code having sum(debit) <> sum(credit)`,
    [after.map(({ id }) => id)],
  )
  const seeded = await pool.query(
    `select count(*)::integer as count from movements where lettering_state = 'complete'`,
  )
  expect([letterings.rows, seeded.rows[0].count > 0]).toEqual([[], true])
})

test('simulate prints what it did, and asks for a firm if there are several', async () => {
  const unclear = await cli(database.ownerUrl, 'simulate', '--folders', '3')
  expect([unclear.code, unclear.error]).toEqual([1, expect.stringContaining('choose one with --firm')])
  const { code, out } = await cli(database.ownerUrl, 'simulate', '--folders', '3', '--firm', firstFirm)
  expect(code).toBe(0)
  expect(out.match(/^Folder \d+: .+ \d+$/gm)).toHaveLength(3)
})
