/** Entries with the parameter columns=extended: the further columns of a FEC, in JSON. */
import { beforeAll, expect, test } from 'vitest'
import { download, madUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { flatNames, readPlainFlat } from '../../support/plain/plain-flat.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

beforeAll(async () => {
  const { schemaId, folderId } = folders.first
  const inFolder = `schema_id = ${schemaId} and folder_id = ${folderId}`
  await stage.staff.client.query(`
    update grandlivre.entries set filed = '{"PieceDate":"20241231","CompAuxLib":"of the entry"}'
      where ${inFolder} and id % 2 = 0;
    update grandlivre.movements set filed = '{"PieceDate":"","CompAuxNum":"own \\" \\\\ \\t é"}'
      where ${inFolder} and id % 5 = 0;
    update grandlivre.movements set filed = '{"PieceDate":"20250102"}' where ${inFolder} and id % 7 = 0;
    update grandlivre.accounts set filed_number = number, filed_name = name,
        auxiliary_number = 'AUX' || id, auxiliary_name = case when number like '40%' then 'A "name"' else '' end
      where ${inFolder} and number like '4%' and filed_number is null`)
})

const year = { idExercice: '12' }

function ask(query: Record<string, string>, headers: Record<string, string> = {}) {
  const url = madUrl(stage.service.url, 'entries', { ...year, ...query })
  return download(url, { ...stage.company, Accept: 'application/x-ndjson', ...headers })
}

// biome-ignore lint/suspicious/noExplicitAny: parsed items
const parsed = (text: string): any[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

test('extended entries have the number, document date and third-party account of a CSV file', async () => {
  const { text } = await ask({ columns: 'extended' })
  const shown = parsed(text).flatMap((entry) =>
    // biome-ignore lint/suspicious/noExplicitAny: parsed items
    entry.movements.map((movement: any) => [
      movement.producerId,
      entry.additionalProducerProperties.ecritureNum,
      movement.filed ? movement.filed.pieceDate : entry.date,
      movement.filed?.auxiliaryNumber ?? null,
      movement.filed?.auxiliaryName ?? null,
    ]),
  )
  const rows = await readPlainFlat(
    stage.staff.client,
    folders.first,
    'e.exercice_id = 12 and e.validated_at is not null',
  )
  const columns = ['movement_id', 'ecriture_num', 'piece_date', 'auxiliary_number', 'auxiliary_name']
  expect(shown).toEqual(rows.map((row) => columns.map((column) => row[flatNames.indexOf(column)])))
  for (const place of [3, 4]) expect(new Set(shown.map((row) => row[place] === null)).size).toBe(2)
  expect(shown.map((row) => row[1])).toContainEqual(expect.stringMatching(/./))
  expect(shown.map((row) => row[2])).toEqual(expect.arrayContaining([null, '2024-12-31', '2025-01-02']))
})

test('extended entries are the plain entries with these members added', async () => {
  const plain = await ask({})
  const { text } = await ask({ columns: 'extended' })
  expect(plain.text).not.toMatch(/ecritureNum|"filed"/)
  const { stringify } = JSON
  const without = parsed(text).map((entry) => {
    delete entry.additionalProducerProperties.ecritureNum
    for (const movement of entry.movements) delete movement.filed
    return `${stringify(entry)}\n`
  })
  expect(without.join('')).toBe(plain.text)
})

test('an ETag of plain entries does not continue extended ones, nor the reverse', async () => {
  const plain = await ask({})
  const extended = await ask({ columns: 'extended' })
  expect(extended.headers.etag).not.toBe(plain.headers.etag)
  const after = parsed(plain.text)[0].producerId
  const rest = await ask({ columns: 'extended', after }, { 'If-Match': String(extended.headers.etag) })
  expect(extended.text.endsWith(rest.text)).toBe(true)
  const other = await ask({ columns: 'extended', after }, { 'If-Match': String(plain.headers.etag) })
  expect(other.status).toBe(412)
})

test('changes since a cursor can be extended too', async () => {
  const before = await ask({ columns: 'extended' })
  const changed = parsed(before.text)[1].producerId
  await stage.staff.client.query(`update grandlivre.entries set comment = 'new' where id = ${changed}`)
  const { text } = await ask({ columns: 'extended', since: String(before.headers['x-ledger-cursor']) })
  const [first, entry] = parsed(text)
  expect(first.entries).toEqual([[changed, changed]])
  expect(entry.additionalProducerProperties).toHaveProperty('ecritureNum')
})

test('any other value of the parameter is refused', async () => {
  const { status, text } = await ask({ columns: 'all' })
  expect([status, JSON.parse(text).error.details.issues]).toEqual([
    400,
    [{ parameter: 'columns', message: expect.stringContaining('extended') }],
  ])
})
