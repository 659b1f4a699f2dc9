/** Ids of a MAD file: kept where they are free in all folders of all tenants, or replaced by new ids. */
import pg from 'pg'
import { expect, test } from 'vitest'
import { inTransaction } from '../../../src/db/pool.ts'
import { IdSource } from '../../../src/ledger/ids.ts'
import { readFixture } from '../../support/fixtures/fixture-files.ts'
import { forEachTest } from '../../support/for-tests.ts'
import { setImportStage } from '../../support/imports/import-stage.ts'
import { until } from '../../support/until.ts'

const text = readFixture('ledger.mad.json').toString('utf8')
const file = JSON.parse(text)

const stage = forEachTest(setImportStage)

/** Draws ids beyond those of the file, so that rows loaded later have none of them. */
const passFile = () => stage.owner.query(`select nextval('grandlivre.ids') from generate_series(1, 10)`)

async function lastValue(): Promise<number> {
  const { rows } = await stage.owner.query('select last_value from grandlivre.ids')
  return Number(rows[0].last_value)
}

test('ids kept from a file are never issued again', async () => {
  const last = '54321'
  await stage.importMad(
    text.replace(`"producerId":"${file.data.entries[7].producerId}"`, `"producerId":"${last}"`),
  )
  const next = await inTransaction(stage.owner, async (client) => {
    const source = new IdSource(client)
    await source.reserve(1)
    return source.next()
  })
  expect(next).toBe('55000')
})

test('an id used by a folder of another tenant is refused with its path', async () => {
  const { folderId } = await stage.importMad(text)
  await stage.expectRefused(
    () => stage.importMad(text),
    `data.accounts[0].producerId "${file.data.accounts[0].producerId}": this id is taken in accounts of folder ` +
      `${folderId} (Brûlerie Noël). Import with --renumber for new ids`,
  )
  const again = await stage.importMad(text, { renumber: true })
  expect(again.folderId).not.toBe(folderId)
})

test.each([
  ['entries', 'data.entries[7].producerId', file.data.entries[7].producerId],
  ['movements', 'data.entries[7].movements[0].producerId', file.data.entries[7].movements[0].producerId],
])('a taken id of %s is refused with its path', async (table, path, id) => {
  await passFile()
  const other = await stage.importMad(text, { renumber: true })
  const ofOther = `folder_id = ${other.folderId} and id = (select max(id) from grandlivre.${table})`
  // The last movement alone: no row refers to it. The last entry gets an empty twin.
  if (table === 'movements')
    await stage.owner.query(`update grandlivre.movements set id = ${id} where ${ofOther}`)
  else
    await stage.owner.query(
      `insert into grandlivre.entries select (jsonb_populate_record(e, jsonb_build_object('id', ${id}))).*
       from grandlivre.entries e where ${ofOther}`,
    )
  await expect(stage.importMad(text)).rejects.toThrow(
    `${path} "${id}": this id is taken in ${table} of folder ${other.folderId}`,
  )
})

test('a taken id of a VAT code is refused with the path of the first company that has it', async () => {
  await passFile()
  const other = await stage.importMad(text, { renumber: true })
  const at = file.data.accounts.findIndex(({ company }: { company?: { vat: unknown } }) => company?.vat)
  const id = file.data.accounts[at].company.vat.producerId
  await stage.owner.query(
    `insert into grandlivre.vat_codes (schema_id, folder_id, id, code, rate) values ($1, $2, $3, 'NEW', 0)`,
    [other.schemaId, other.folderId, id],
  )
  await expect(stage.importMad(text)).rejects.toThrow(
    `data.accounts[${at}].company.vat.producerId "${id}": this id is taken in vat_codes`,
  )
})

test('an id that an uncommitted transaction uses is refused', async () => {
  await passFile()
  const other = await stage.importMad(text, { renumber: true })
  const id = file.data.accounts[5].producerId
  const writer = new pg.Client({ connectionString: stage.database.ownerUrl })
  await writer.connect()
  await writer.query(`begin; select nextval('grandlivre.ids')`)
  await writer.query(
    `insert into grandlivre.accounts (schema_id, folder_id, id, number, name) values ($1, $2, $3, 'NEW', '')`,
    [other.schemaId, other.folderId, id],
  )
  const outcome = stage.importMad(text).then(
    () => 'imported',
    (error: Error) => error.message,
  )
  // Once it looks for taken ids for the last time, it waits for the writer.
  await until(async () => {
    const { rows } = await stage.owner.query(
      `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
         and query like '%virtualtransaction = any%'`,
    )
    return rows.length > 0
  })
  await writer.query('commit')
  await writer.end()
  expect(await outcome).toContain(`data.accounts[5].producerId "${id}": this id is taken in accounts`)
})

test('one of two concurrent imports of the same file is refused', async () => {
  const outcomes = await Promise.allSettled([stage.importMad(text), stage.importMad(text)])
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  const { rows } = await stage.owner.query(
    'select id from grandlivre.entries group by id having count(*) > 1',
  )
  expect(rows).toEqual([])
})

test('an id far beyond the issued ids is refused, and the ids up to it are not used up', async () => {
  const far = text.replaceAll(
    `"producerId":"${file.data.entries[7].producerId}"`,
    '"producerId":"9007199254740991"',
  )
  const before = await lastValue()
  await expect(stage.importMad(far)).rejects.toThrow(
    /^data\.entries\[7\]\.producerId "9007199254740991": too far above the ids that this database gives out, from \d+ on\. Import with --renumber for new ids$/,
  )
  expect(await lastValue()).toBeLessThan(before + 100_000)
  expect((await stage.importMad(far, { renumber: true })).entries).toBe(file.data.entries.length)
})
