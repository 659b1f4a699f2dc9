/** A FEC over HTTP: its parameters, the name of its file, and what its status counts. */
import { Buffer } from 'node:buffer'
import { zstdDecompressSync } from 'node:zlib'
import iconv from 'iconv-lite'
import { beforeAll, expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { ended, trigger } from '../support/full-export.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { plainFecFile } from '../support/plain/plain-fec-file.ts'
import { setTwoServices } from '../support/stages/two-services.ts'

const { first, sameFirm } = folders
const stage = forTests(setTwoServices)

beforeAll(async () => {
  await stage.sql(
    'update grandlivre.exercices set filed_columns = $1, scattered = true where folder_id = $2 and id = 12',
    [['PJ'], first.folderId],
  )
  await stage.sql(
    `update grandlivre.movements set filed = '{"PJ":"a ’ b"}' where folder_id = $1 and exercice_id = 12`,
    [first.folderId],
  )
})

const exported = async (query: Record<string, string>, headers = stage.company) => {
  const { status, body } = await trigger(stage.url, headers, { format: 'FEC', idExercice: '12', ...query })
  expect([status, body]).toEqual([200, expect.objectContaining({ id: expect.any(String) })])
  const job = await ended(stage.url, headers, body.id)
  expect(job).toMatchObject({ status: 'DONE' })
  return job
}

const download = async (url: string) => {
  const response = await fetch(url)
  const [, name] = /filename="([^"]+)"/.exec(response.headers.get('content-disposition') ?? '') ?? []
  return {
    bytes: Buffer.from(await response.arrayBuffer()),
    name,
    type: response.headers.get('content-type'),
  }
}

test('a FEC holds one exercice under its legal file name, and its status counts what it leaves out', async () => {
  await stage.sql(`update grandlivre.folders set siret = '12345678900018' where id = $1`, [first.folderId])
  const job = await exported({})
  const { bytes, name, type } = await download(job.url!)
  expect([name, type]).toEqual(['123456789FEC20250630.txt', 'text/plain'])
  expect(bytes.equals(await plainFecFile(stage.staff.client, first, '12'))).toBe(true)
  const [counts] = await stage.sql(
    `select count(*) filter (where validated_at is null)::int as drafts from grandlivre.entries
     where schema_id = $1 and folder_id = $2 and exercice_id = 12`,
    [first.schemaId, first.folderId],
  )
  expect(job.notes).toMatchObject({ drafts: counts.drafts, columnsLeftOut: 1, earlierImports: 0 })
  expect(Object.keys(job.notes!).toSorted()).toEqual(
    [
      ...['drafts', 'blankValidDates', 'replacedCharacters'],
      ...['blankFields', 'columnsLeftOut', 'earlierImports', 'outsideBooks'],
    ].toSorted(),
  )
  expect(job.rows).toBe(bytes.toString('latin1').split('\r\n').length - 2)
})

test('another encoding, columns or compression, in any letter case, makes another file', async () => {
  const plain = await exported({})
  const whole = await exported({ encoding: 'UTF-8', columns: 'Extended', compression: 'zstd' })
  expect(whole.id).not.toBe(plain.id)
  expect((await exported({ encoding: 'utf-8', columns: 'extended', compression: 'ZSTD' })).id).toBe(whole.id)
  const { bytes, name } = await download(whole.url!)
  expect(name).toBe('123456789FEC20250630.txt.zst')
  const text = zstdDecompressSync(bytes).toString()
  expect(text).toMatch(/\tIdevise\tPJ\r\n/)
  expect(text).toContain('\ta ’ b\r\n')
  expect(whole.notes).toMatchObject({ replacedCharacters: 0, columnsLeftOut: 0 })
  const latin = await exported({ columns: 'extended' })
  expect(iconv.decode((await download(latin.url!)).bytes, 'iso-8859-15')).toContain(`\ta ' b\r\n`)
  expect(latin.notes!['replacedCharacters']).toBeGreaterThan(0)
})

test.each([
  [null, null, '000000000FEC20250630.txt'],
  [null, '987654321', '987654321FEC20250630.txt'],
  [null, '98765432', '000000000FEC20250630.txt'],
  ['123456789', 'ALPHA', '123456789FEC20250630.txt'],
])('the FEC of a folder with SIRET %s and reference %s is named %s', async (siret, reference, expected) => {
  await stage.sql('update grandlivre.folders set siret = $1, reference = $2 where id = $3', [
    siret,
    reference,
    sameFirm.folderId,
  ])
  const job = await exported({}, stage.asFirm(sameFirm.folderId))
  expect((await download(job.url!)).name).toBe(expected)
})

test('the file name stays when the exercice has been deleted', async () => {
  const headers = stage.asFirm(sameFirm.folderId)
  const job = await exported({ idExercice: '11' }, headers)
  const { name } = await download(job.url!)
  for (const table of ['entries', 'exercices'])
    await stage.sql(
      `delete from grandlivre.${table} where schema_id = $1 and folder_id = $2 and ${table === 'entries' ? 'exercice_id' : 'id'} = 11`,
      [sameFirm.schemaId, sameFirm.folderId],
    )
  const after = await ended(stage.url, headers, job.id)
  expect((await download(after.url!)).name).toBe(name)
})

test('an exercice of the folder is required and is the only selection; each option takes one value', async () => {
  const refused = async (query: Record<string, string>) => {
    const { status, body } = await trigger(stage.url, stage.company, { format: 'FEC', ...query })
    const { code, details } = (body as unknown as { error: { code: string; details: { issues?: object[] } } })
      .error
    return [status, code, ...(details.issues ?? [])]
  }
  const required = { parameter: 'idExercice', message: 'is required with format FEC' }
  expect(await refused({})).toEqual([400, 'ERR-VALIDATION', required])
  expect(await refused({ idExercice: '' })).toEqual([400, 'ERR-VALIDATION', required])
  expect(await refused({ idExercice: '999' })).toEqual([404, 'ERR-EXERCICE-NOT-FOUND'])
  const onlyTra = (parameter: string) => ({
    parameter,
    message: expect.stringMatching(/^is allowed only with .*TRA/),
  })
  expect(
    await refused({ idExercice: '12', startDate: '2024-01-01', endDate: '2024-02-01', journalIds: '31' }),
  ).toEqual([400, 'ERR-VALIDATION', onlyTra('startDate'), onlyTra('endDate'), onlyTra('journalIds')])
  for (const [parameter, value, accepted] of [
    ['encoding', 'iso-8859-15', 'utf-8'],
    ['columns', 'all', 'extended'],
  ])
    expect(await refused({ idExercice: '12', [parameter!]: value! })).toEqual([
      400,
      'ERR-VALIDATION',
      { parameter, message: `must be ${accepted}` },
    ])
  for (const parameter of ['encoding', 'columns']) {
    const value = { encoding: 'utf-8', columns: 'extended' }[parameter]!
    const { status, body } = await trigger(stage.url, stage.company, { format: 'TRA', [parameter]: value })
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining('is allowed only with FEC')])
  }
})
