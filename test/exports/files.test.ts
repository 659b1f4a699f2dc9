/**
 * Claims about the file of every format: it contains what SQL reads from the folder, in chunks of any size, with its
 * totals.
 */
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { wholeFolder } from '../../src/exports/selection.ts'
import { shrinking, tries } from '../support/changes/properties.ts'
import { randomEntries } from '../support/changes/random-entries.ts'
import { producedBytes, renderedFile, renderFec } from '../support/fixtures/rendered-file.ts'
import { forTests } from '../support/for-tests.ts'
import { addEntry, exercices, insertDimensions } from '../support/ledgers/ledger.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { parseCsv } from '../support/plain/plain-csv.ts'
import { plainFecFile } from '../support/plain/plain-fec-file.ts'
import { flatNames, readPlainFlat } from '../support/plain/plain-flat.ts'
import { plainBody, readPlainMovements } from '../support/plain/plain-movement.ts'
import { plainTra } from '../support/plain/plain-tra.ts'
import { now, setMadStage } from '../support/stages/mad-stage.ts'

const stage = forTests(setMadStage)
const { schemaId, folderId } = folders.sameFirm
/** Has only the entries of a test. */
const folder = { schemaId, folderId }

beforeAll(() => insertDimensions(stage.staff.client, folder, 'random'))

test('every file equals that of a second, simple writer, with any texts in its entries', async () => {
  const { client } = stage.staff
  const tryEntries = fc.asyncProperty(
    randomEntries,
    fc.constantFrom(300, 4096, 256 * 1024),
    shrinking(async (entries, chunkBytes) => {
      await stage.staff.sql(`delete from movements where folder_id = ${folderId};
        delete from entries where folder_id = ${folderId}`)
      for (const each of entries) await addEntry(client, folder, ...each)
      const rendering = { now, chunkBytes }

      const mad = await renderedFile(stage.pool, folder, 'JSON', rendering)
      expect(String(mad.bytes)).toBe(await stage.expected(folder))

      const movements = await readPlainMovements(client, folder)
      for (const form of ['json', 'ndjson'] as const) {
        const whole = {
          after: undefined,
          entries: undefined,
          since: undefined,
          encoding: 'identity',
        } as const
        const selection = wholeFolder(folder, 'Europe/Paris')
        const bytes = await producedBytes(stage.pool, { what: 'movements', selection, form, ...whole })
        expect(String(bytes)).toBe(plainBody(movements, form))
      }

      const [names, ...rows] = parseCsv(
        String((await renderedFile(stage.pool, folder, 'CSV', rendering)).bytes),
      ).map((record) => record.map((field) => field.text))
      expect(names).toEqual(flatNames)
      expect(rows).toEqual(await readPlainFlat(client, folder))

      const tra = await renderedFile(stage.pool, folder, 'TRA', rendering)
      const lines = tra.bytes
        .toString('latin1')
        .split('\r\n')
        .filter((line) => /^(\*{3}DEV|(?!\*{3}).)/.test(line))
      const plain = await plainTra(client, folder, {})
      expect(lines).toEqual([...plain.currencies, ...plain.entries])

      for (const { id } of exercices)
        for (const encoding of [undefined, 'utf-8'] as const) {
          const { bytes } = await renderFec(stage.pool, folder, id, { encoding, chunkBytes })
          expect(String(bytes)).toBe(String(await plainFecFile(client, folder, id, encoding && { encoding })))
        }
    }),
  )
  await fc.assert(tryEntries, tries(Number(process.env['RANDOM_ROUNDS'] ?? 1) * 20))
}, 600_000)

const { first } = folders
const formats = ['JSON', 'TRA', 'CSV', 'FEC'] as const
const chosen = (format: string) => (format === 'FEC' ? { exerciceId: '12' } : {})

test.each(formats)('a file has the same bytes for every chunk size: %s', async (format) => {
  const whole = await renderedFile(stage.pool, first, format, { now, ...chosen(format) })
  for (const chunkBytes of [300, 1500, 4096]) {
    const { bytes, parts } = await renderedFile(stage.pool, first, format, {
      now,
      chunkBytes,
      ...chosen(format),
    })
    expect(bytes.equals(whole.bytes)).toBe(true)
    expect(parts.length).toBeGreaterThan(whole.parts.length)
    expect(parts.filter((part) => part.length === 0)).toEqual([])
  }
})

test.each([...formats, 'PARQUET'] as const)('totals equal those of SQL to the cent: %s', async (format) => {
  const rendering = { now, chunkBytes: 4096, ...chosen(format) }
  const { totals, rowsTotal } = await renderedFile(stage.pool, first, format, rendering)
  const inBooks = `and e.exercice_id = 12 and e.validated_at is not null and (j.type <> 'OD_EXC' or e.source = 'FEC')`
  const [sums] = await stage.staff.sql(
    `select count(m.id), count(distinct ${format === 'JSON' ? 'e.id' : 'm.entry_id'}) as entries,
         sum(m.debit) as debit, sum(m.credit) as credit
       from entries e
       join journals j on (j.schema_id, j.folder_id, j.id) = (e.schema_id, e.folder_id, e.journal_id)
       left join movements m on (m.schema_id, m.folder_id, m.entry_id) = (e.schema_id, e.folder_id, e.id)
       where (e.schema_id, e.folder_id) = ($1, $2) ${format === 'FEC' ? inBooks : ''}`,
    [first.schemaId, first.folderId],
  )
  expect(totals).toEqual({
    rows: Number(sums.count),
    entries: Number(sums.entries),
    debit: BigInt(sums.debit),
    credit: BigInt(sums.credit),
  })
  expect(rowsTotal).toBe(totals.rows)
})

test.each(['JSON', 'TRA', 'CSV', 'PARQUET'] as const)(
  'no byte is written for a folder that is unknown or belongs to another tenant: %s',
  async (format) => {
    for (const unknown of ['999', '211'])
      await expect(
        renderedFile(stage.pool, { schemaId: '100', folderId: unknown }, format),
      ).rejects.toMatchObject({ code: 'ERR-FOLDER-NOT-FOUND' })
  },
)
