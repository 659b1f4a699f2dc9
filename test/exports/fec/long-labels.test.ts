/** Labels of 5,000 characters, the longest that a FEC may have: whole in every format, and back. */
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { checkTra } from '../../../src/formats/tra/check/check.ts'
import { importFec } from '../../../src/ledger/fec/import-fec.ts'
import { download, movementsUrl } from '../../support/download.ts'
import { askParquet } from '../../support/fixtures/parquet.ts'
import { madBytes, renderedFile, renderFec, traBytes } from '../../support/fixtures/rendered-file.ts'
import { forEachTest } from '../../support/for-tests.ts'
import { setImportStage } from '../../support/imports/import-stage.ts'
import { fecFile, ledger } from '../../support/ledgers/fec-file.ts'
import { createTenants, credentials } from '../../support/ledgers/tenants.ts'
import { parseCsv } from '../../support/plain/plain-csv.ts'
import { plainTra } from '../../support/plain/plain-tra.ts'
import { startTestService } from '../../support/service.ts'

const stage = forEachTest(setImportStage)

/** Characters of one to four bytes; those that COPY, JSON and CSV write as two or six; one that becomes 18 letters. */
const labels = [
  'L'.repeat(5000),
  'é'.repeat(5000),
  '€'.repeat(5000),
  '😀'.repeat(5000),
  '"'.repeat(5000),
  '\\'.repeat(5000),
  `a${'\u0001'.repeat(4998)}b`,
  '\u{fdfa}'.repeat(5000),
]
const rows = labels.flatMap((EcritureLib, at) =>
  [16, 17].map((of) => ({ ...ledger[of]!, EcritureLib, EcritureNum: `${at + 1}` })),
)
const twice = labels.flatMap((label) => [label, label])

const imported = async (bytes: Buffer, name = '123456789FEC20231231.txt') =>
  importFec(stage.owner, { file: await stage.written(bytes, name) })

async function storedLabels(folderId: string): Promise<string[]> {
  const { rows: found } = await stage.owner.query(
    'select description from grandlivre.movements where folder_id = $1 order by id',
    [folderId],
  )
  return found.map(({ description }) => description)
}

test('labels of 5,000 characters are complete in every format', async () => {
  const folder = await imported(fecFile(rows))
  expect(await storedLabels(folder.folderId)).toEqual(twice)

  const csv = parseCsv((await renderedFile(stage.service, folder, 'CSV')).bytes.toString('utf8')).map((row) =>
    row.map(({ text }) => text),
  )
  const column = csv[0]!.indexOf('description')
  expect(csv.slice(1).map((row) => row[column])).toEqual(twice)
  const parquet = await renderedFile(stage.service, folder, 'PARQUET')
  const [inParquet] = await askParquet(parquet.bytes, 'select description from file order by movement_id')
  expect(inParquet!.flat()).toEqual(twice)

  const mad = await madBytes(stage.service, folder)
  const { data } = JSON.parse(mad.toString('utf8'))
  // biome-ignore lint/suspicious/noExplicitAny: parsed items
  expect(data.entries.flatMap((entry: any) => entry.movements.map((one: any) => one.description))).toEqual(
    twice,
  )
  const again = await stage.importMad(mad, { renumber: true })
  expect(await storedLabels(again.folderId)).toEqual(twice)

  const tra = await traBytes(stage.service, folder)
  expect((await checkTra(Readable.from([tra]))).problems).toEqual([])
  const entryLines = tra
    .toString('latin1')
    .split('\r\n')
    .slice(0, -1)
    .filter((line) => !line.startsWith('***'))
  expect(entryLines).toEqual((await plainTra(stage.owner, folder, {})).entries)
  expect(entryLines).toHaveLength(twice.length)
})

test('a FEC with labels of 5,000 characters is exported unchanged, also after another import', async () => {
  const folder = await imported(fecFile(rows))
  const out = await renderFec(stage.service, folder, folder.exerciceId, { encoding: 'utf-8' })
  const lines = out.bytes.toString('utf8').split('\r\n').slice(1, -1)
  expect(lines.map((line) => line.split('\t')[10])).toEqual(
    twice.map((label) => label.replace('\u0001'.repeat(4998), ' ')),
  )
  const again = await imported(out.bytes, '987654321FEC20231231.txt')
  const second = await renderFec(stage.service, again, again.exerciceId, { encoding: 'utf-8' })
  expect(second.bytes.equals(out.bytes)).toBe(true)
  // In ISO 8859-15 a character may become several, so a field may have more than 5,000.
  const latin = await renderFec(stage.service, folder, folder.exerciceId)
  const lengths = latin.bytes.toString('latin1').split('\r\n').slice(1, -1)
  expect(Math.max(...lengths.map((line) => line.length))).toBeGreaterThan(90_000)
})

test('the stream of movements keeps labels of 5,000 characters', async () => {
  const folder = await imported(fecFile(rows))
  const staff = await createTenants(stage.database.ownerUrl)
  const service = await startTestService(stage.database)
  try {
    const secret = await staff.thirdParty('PARTNER')
    const caller = credentials(await staff.token('PARTNER', 'api', folder), secret)
    const answer = await download(movementsUrl(service.url, { idExercice: folder.exerciceId }), caller)
    expect(answer.json.map((movement: { description: string }) => movement.description)).toEqual(twice)
  } finally {
    await service.stop()
    await staff.end()
  }
})

test('a longer label is refused with its length in characters', async () => {
  const longer = rows.with(3, { ...rows[3]!, EcritureLib: '😀'.repeat(5001) })
  await expect(imported(fecFile(longer))).rejects.toThrow(
    /line 5, EcritureLib "(?:😀){30}\.\.\.": at most 5000 characters are expected, this field has 5001$/,
  )
})
