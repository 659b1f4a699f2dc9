/** The contents of a Parquet file, read back by DuckDB and compared with the CSV file of the same folder. */
import { describe, expect, test } from 'vitest'
import { UnsupportedByFormat } from '../../../src/formats/file-formats.ts'
import { flatColumns } from '../../../src/formats/flat/columns.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import { addHostileTexts } from '../../support/fixtures/hostile-texts.ts'
import { askParquet } from '../../support/fixtures/parquet.ts'
import { type Chosen, renderedFile } from '../../support/fixtures/rendered-file.ts'
import { forTests } from '../../support/for-tests.ts'
import { addEntry } from '../../support/ledgers/ledger.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { parseCsv } from '../../support/plain/plain-csv.ts'
import { setMadStage } from '../../support/stages/mad-stage.ts'

const { first, sameFirm, otherFirm, otherTenant } = folders
const stage = forTests(setMadStage)

async function parquetOf(folder: FolderKey, chosen: Chosen = {}): Promise<Buffer> {
  return (await renderedFile(stage.pool, folder, 'PARQUET', chosen)).bytes
}

/** The text that DuckDB prints for a field of a CSV file, in the type of its column. */
function printed(text: string | null, type: string): string | null {
  if (text === null) return null
  if (type === 'TIMESTAMP') return text.replace('T', ' ').replace('Z', '')
  const [, scale] = /^DECIMAL\(18,(\d)\)$/.exec(type) ?? []
  if (scale !== undefined) return fixed(text, Number(scale))
  if (!type.startsWith('STRUCT')) return text
  const numbers = text.replace(/"(amount|rate)":([-\d.]+)/g, '"$1":"$2"')
  const shares = JSON.parse(numbers) as { amount: string; rate: string }[]
  return JSON.stringify(
    shares.map(({ amount, rate, ...share }) => {
      return { ...share, amount: fixed(amount, 2), rate: fixed(rate, 4) }
    }),
  )
}

function fixed(number: string, scale: number): string {
  const [whole, fraction = ''] = number.split('.')
  return `${whole}.${fraction.padEnd(scale, '0')}`
}

/** Every column in its order; the structs of shares as JSON with amounts as texts. */
const everything = `select ${flatColumns
  .map(({ name, type }) =>
    type.startsWith('STRUCT')
      ? `list_transform(${name}, lambda s: struct_pack(axis_code := s.axis_code, section_code := s.section_code,
           amount := s.amount::varchar, rate := s.rate::varchar))::json`
      : name,
  )
  .join(', ')} from file`

async function expectSameRows(folder: FolderKey, chosen: Chosen = {}): Promise<number> {
  const csv = (await renderedFile(stage.pool, folder, 'CSV', chosen)).bytes.toString('utf8')
  const expected = parseCsv(csv)
    .slice(1)
    .map((row) => row.map(({ text }, i) => printed(text, flatColumns[i]!.type)))
  const [rows] = await askParquet(await parquetOf(folder, chosen), everything)
  expect(rows).toEqual(expected)
  return expected.length
}

describe('a file', () => {
  test('has the rows of the CSV file, in the same order and with the same fields', async () => {
    expect(await expectSameRows(first)).toBeGreaterThan(300)
    expect(await expectSameRows(first, { exerciceId: '12', journalIds: ['31', '32'] })).toBeGreaterThan(3)
  })

  test('has the declared columns and types, compressed with zstd', async () => {
    const [columns, codecs] = await askParquet(
      await parquetOf(first),
      'select column_name, column_type from (describe file)',
      "select distinct compression from parquet_metadata(getvariable('path'))",
    )
    expect(columns).toEqual(flatColumns.map(({ name, type }) => [name, type]))
    expect(codecs).toEqual([['ZSTD']])
  })

  test('has the right sums of each account, to the cent', async () => {
    const [found] = await askParquet(
      await parquetOf(first),
      `select account_id, sum(debit), sum(credit), count(*) from file group by account_id order by account_id`,
    )
    const { rows } = await stage.staff.client.query({
      text: `select account_id::text, (sum(debit) * 0.01)::numeric(38, 2)::text, (sum(credit) * 0.01)::numeric(38, 2)::text,
          count(*)::text
        from grandlivre.movements m where schema_id = $1 and folder_id = $2 group by m.account_id order by m.account_id`,
      values: [first.schemaId, first.folderId],
      rowMode: 'array',
    })
    expect(rows.length).toBeGreaterThan(5)
    expect(found).toEqual(rows)
  })

  test('of an empty selection has columns and no rows', async () => {
    const bytes = await parquetOf(first, { period: { start: '1990-01-01', end: '1990-12-31' } })
    const [columns, rows] = await askParquet(bytes, 'select column_name from (describe file)', everything)
    expect([columns!.length, rows]).toEqual([flatColumns.length, []])
  })

  test('has the same counts of rows and the same sums as the CSV file', async () => {
    const [csv, parquet] = [
      await renderedFile(stage.pool, first, 'CSV'),
      await renderedFile(stage.pool, first, 'PARQUET'),
    ]
    expect(parquet.totals).toEqual(csv.totals)
  })

  test('of an unknown folder is refused', async () => {
    await expect(parquetOf({ schemaId: '100', folderId: '999' })).rejects.toMatchObject({
      code: 'ERR-FOLDER-NOT-FOUND',
    })
  })
})

test('texts of every kind are read back unchanged, and missing texts stay missing', async () => {
  const { client } = stage.staff
  const ofFolder = `schema_id = ${otherFirm.schemaId} and folder_id = ${otherFirm.folderId}`
  await addHostileTexts(client, otherFirm)
  for (const table of ['axes', 'sections'])
    await client.query(`update grandlivre.${table} set code = $1 || id where ${ofFolder}`, [
      `",\r\n\\N\t\u0001\u2028😀`,
    ])
  expect(await expectSameRows(otherFirm)).toBeGreaterThan(400)
})

describe('amounts', () => {
  const largest = 999_999_999_999_999_999n
  const add = (folder: FolderKey, id: string, debit: bigint, shares: bigint[] | null = null) =>
    addEntry(stage.staff.client, folder, { id }, [{ id: String(Number(id) + 1), debit, shares }])

  test('of 18 digits are exact, in shares too; longer amounts are refused, and the error names their column', async () => {
    await add(otherTenant, '400000', largest, [71n, largest, -largest, 74n, -largest, 1n])
    await add(otherTenant, '400010', -largest)
    await expectSameRows(otherTenant)
    await add(otherTenant, '400020', largest + 1n)
    const refusal = parquetOf(otherTenant)
    await expect(refusal).rejects.toThrow(UnsupportedByFormat)
    await expect(refusal).rejects.toThrow(
      /^The column debit of a Parquet file .* of movement 400021 is, in its smallest unit, 1000000000000000000;/,
    )
  })

  test('of shares are refused if they have more than 18 digits', async () => {
    await stage.staff.client.query('delete from grandlivre.entries where id = 400020')
    await add(otherTenant, '400030', 1n, [71n, 1n, largest + 1n])
    await expect(parquetOf(otherTenant)).rejects.toThrow(
      /^The column analytics .* of movement 400031 is, in its smallest unit, \{71,1,1000000000000000000\};/,
    )
  })
})

test('a row of 8 MiB fits; a larger one is refused, and the error names its movement', async () => {
  const { client } = stage.staff
  await client.query(`insert into grandlivre.exercices (schema_id, folder_id, id, start_date, end_date, lettering)
    values (${sameFirm.schemaId}, ${sameFirm.folderId}, 12, '2024-07-01', '2025-06-30', 'MONO')`)
  await client.query(`insert into grandlivre.journals (schema_id, folder_id, id, code, name, type)
    values (${sameFirm.schemaId}, ${sameFirm.folderId}, 31, 'J', 'Journal', 'ACH')`)
  await client.query(`insert into grandlivre.accounts (schema_id, folder_id, id, number, name)
    values (${sameFirm.schemaId}, ${sameFirm.folderId}, 101, '601', 'Compte')`)
  const rowMax = 8 * 1024 * 1024
  const addOne = (id: string, characters: number) =>
    addEntry(client, sameFirm, { id }, [{ id: `${id}1`, description: 'x'.repeat(characters) }])
  await addOne('7', 1)
  const csv = (await renderedFile(stage.pool, sameFirm, 'CSV')).bytes.toString('utf8')
  const around = csv.split('\r\n')[1]!.length + 2 - 1
  await addOne('8', rowMax - around)
  const [lengths] = await askParquet(await parquetOf(sameFirm), 'select length(description) from file')
  expect(lengths).toEqual([['1'], [String(rowMax - around)]])
  await addOne('9', rowMax - around + 1)
  await expect(parquetOf(sameFirm)).rejects.toThrow(`and movement 91 has ${rowMax + 1}; a CSV file holds it`)
})
