/** The full export in TRA over HTTP: parameters, jobs, files, and books that do not fit the format. */
import { mkdtempSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createPool } from '../../../src/db/pool.ts'
import { checkTra } from '../../../src/formats/tra/check/check.ts'
import { type Chosen, traBytes } from '../../support/fixtures/rendered-file.ts'
import { forTests } from '../../support/for-tests.ts'
import { ended, type JobAnswer, statusUrl, trigger } from '../../support/full-export.ts'
import { addEntry } from '../../support/ledgers/ledger.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { request } from '../../support/service.ts'
import { folderReference, setExportStage } from '../../support/stages/export-stage.ts'

const { first, sameFirm } = folders
const files = mkdtempSync(join(tmpdir(), 'grandlivre-tra-'))
const stage = forTests(() => setExportStage({ store: { kind: 'filesystem', folder: files } }))
const pool = forTests(() => createPool(stage.database.serviceUrl, { max: 2, applicationName: 'test' }))

const sql: typeof stage.staff.sql = (...query) => stage.staff.sql(...query)
const passAnHour = () =>
  sql(`update grandlivre.exports set created_at = created_at - interval '61 minutes' where latest`)

/** Sends the query as it is written: it may repeat journalIds. */
async function ask(query: string, headers = stage.company) {
  return request(`${stage.service.url}/api/v1/mad/all?version=1.0.0&${query}`, headers)
}

async function exported(query: string, headers = stage.company): Promise<JobAnswer> {
  const { status, body } = await ask(query, headers)
  expect([status, body.status]).toEqual([200, 'INIT'])
  return ended(stage.service.url, headers, body.id)
}

async function fetched(job: JobAnswer): Promise<Buffer> {
  return Buffer.from(await (await fetch(job.url!)).arrayBuffer())
}

/** The file of that selection, rendered here, with the minute of the exported file: that may be one minute earlier. */
async function expected(bytes: Buffer, chosen?: Chosen): Promise<Buffer> {
  const file = await traBytes(pool, first, chosen)
  bytes.copy(file, 41, 41, 53)
  return file
}

describe('an export', () => {
  test('in TRA is a file of its folder, and its status states what the file contains', async () => {
    await passAnHour()
    const job = await exported('format=tra')
    const sizes = ['size', 'fileSha256', 'contentSize', 'rows', 'sha256', 'totals']
    expect(Object.keys(job)).toEqual(['id', 'status', 'url', ...sizes])
    const response = await fetch(job.url!)
    const bytes = Buffer.from(await response.arrayBuffer())
    expect(bytes.equals(await expected(bytes))).toBe(true)
    // The day comes from the file's header, also taken at the snapshot: a clock read here may be past midnight.
    const day = bytes.toString('latin1', 41, 49).replace(/(..)(..)(....)/, '$3-$2-$1')
    expect(decodeURIComponent(response.headers.get('content-disposition')!)).toContain(
      `filename*=UTF-8''${folderReference}_TRA_${day}.tra`,
    )
    expect(response.headers.get('content-type')).toBe('text/plain; charset=windows-1252')
    const found = await checkTra(parts(bytes))
    const decimals = (minor: bigint) => Number(minor) / 100
    expect(job).toMatchObject({
      size: bytes.length,
      rows: found.movements,
      totals: { debit: decimals(found.debit), credit: decimals(found.credit) },
    })
    expect(found.header).toMatchObject({ type: 'DOS', format: 'ETE', version: '011', firm: 'Firm 110' })
  })

  const selections: [string, string, Chosen][] = [
    ['a year', 'idExercice=012', { exerciceId: '12' }],
    [
      'a period of nearly 24 months',
      'startDate=2023-09-01&endDate=2025-08-31',
      { period: { start: '2023-09-01', end: '2025-08-31' } },
    ],
    [
      'journals of a year',
      'idExercice=13&journalIds=33,31&journalIds=40',
      { exerciceId: '13', journalIds: ['31', '33', '40'] },
    ],
  ]
  test.each(selections)('of %s contains exactly this selection', async (_, query, chosen) => {
    const bytes = await fetched(await exported(`format=TRA&${query}`))
    expect(bytes.toString('latin1', 8, 14)).toBe('JRLETE')
    expect(bytes.equals(await expected(bytes, chosen))).toBe(true)
  })

  test('is the same job for the same set of journals, and another job for any other set', async () => {
    await passAnHour()
    const journals = ['31,32', '32,31', '31&journalIds=32', '0032,31,31', '32, 31'].map(
      (ids) => `&journalIds=${ids}`,
    )
    const answers = await Promise.all(journals.map((each) => ask(`format=TRA${each}`)))
    const ids = new Set(answers.map(({ body }) => body.id))
    expect(ids.size).toBe(1)
    for (const other of ['', '&journalIds=31', '&journalIds=31,32,33', '&journalIds=31,32&idExercice=12'])
      ids.add((await ask(`format=TRA${other}`)).body.id)
    ids.add((await trigger(stage.service.url, stage.company)).body.id)
    expect(ids.size).toBe(6)
    for (const id of ids) expect((await ended(stage.service.url, stage.company, id)).status).toBe('DONE')
  })
})

async function* parts(bytes: Buffer) {
  yield bytes
}

describe('a request', () => {
  test('is refused if it names a journal or year that the folder does not have, even if another folder has it', async () => {
    await sql(
      `insert into grandlivre.journals (schema_id, folder_id, id, code, name, type)
      values ($1, $2, 777, 'X7', 'of another folder', 'OD')`,
      [sameFirm.schemaId, sameFirm.folderId],
    )
    const refused = async (query: string) => {
      const { status, body } = await ask(`format=TRA&${query}`)
      return [status, body.error.code, body.error.message]
    }
    expect(await refused('journalIds=31,777,99')).toEqual([
      404,
      'ERR-JOURNAL-NOT-FOUND',
      'Not journals of this folder: 99, 777',
    ])
    const codeOf = async (query: string) => (await refused(query)).slice(0, 2)
    expect(await codeOf('idExercice=9')).toEqual([404, 'ERR-EXERCICE-NOT-FOUND'])
    expect(await codeOf('journalIds=,')).toEqual([400, 'ERR-VALIDATION'])
    expect(await sql(`select from grandlivre.exports where 777 = any (journal_ids)`)).toEqual([])
  })
})

describe('books that do not fit', () => {
  const headers = () => ({ ...stage.firm, 'society-id': sameFirm.folderId })
  const filesOf = async (id: string) =>
    (await readdir(files, { recursive: true })).filter(
      (name) => name.includes(id) && /\.(tra|part)$/.test(name),
    )

  test('end as FAILED at once, with the field and value, and leave no file in the store', async () => {
    await passAnHour()
    await sql(
      `update grandlivre.accounts set number = '607000000000000000' where folder_id = $1 and id = 110`,
      [sameFirm.folderId],
    )
    const job = await exported('format=TRA', headers())
    expect(Object.keys(job)).toEqual(['id', 'status', 'reason'])
    expect(job.status).toBe('FAILED')
    expect(job.reason).toMatch(
      /^The folder does not fit the format; a new export will fail too until it is corrected\. CGN\.CODE of a TRA file has 17 columns and cannot hold "607000000000000000"\. Quote request [\w-]{36} to the operators/,
    )
    expect(await filesOf(job.id)).toEqual([])
    expect(await sql('select attempt, state from grandlivre.exports where id = $1', [job.id])).toEqual([
      { attempt: 1, state: 'failed' },
    ])
    // A JSON file can hold these books. The same trigger returns the failure for an hour.
    expect((await exported('format=JSON', headers())).status).toBe('DONE')
    expect((await ask('format=tra', headers())).body).toEqual(job)
  })

  test('end as FAILED at too large an amount in the middle of the file, and the written part is removed', async () => {
    await passAnHour()
    await sql('update grandlivre.accounts set number = $2 where folder_id = $1 and id = 110', [
      sameFirm.folderId,
      '607',
    ])
    await sql(
      'update grandlivre.movements set debit = -9223372036854775807, credit = 0 where folder_id = $1 and id = 8990',
      [sameFirm.folderId],
    )
    const job = await exported('format=TRA', headers())
    expect(job.reason).toContain(
      'ENTRY.MONTANT1 of a TRA file has 20 columns and cannot hold "-92233720368547758,07".',
    )
    expect(await filesOf(job.id)).toEqual([])
    expect((await request(statusUrl(stage.service.url, job.id), headers())).body).toEqual(job)
  })

  test('with a sixth axis give a file without that axis, and a warning in the log', async () => {
    await passAnHour()
    const key = [first.schemaId, first.folderId]
    for (const id of [63, 64, 65, 66]) {
      await sql(
        'insert into grandlivre.axes (schema_id, folder_id, id, code, name) values ($1, $2, $3, $4, $4)',
        [...key, id, `AXIS${id}`],
      )
      await sql(
        `insert into grandlivre.sections (schema_id, folder_id, id, axis_id, code, name, account_roots, closed)
         values ($1, $2, $3, $4, $5, $5, '{}', false)`,
        [...key, 600 + id, id, `SECTION${id}`],
      )
    }
    await addEntry(stage.staff.client, first, { id: '77001' }, [
      {
        id: '77002',
        accountId: '110',
        debit: 100n,
        shares: [665n, 100n, 1_000_000n, 666n, 100n, 1_000_000n],
      },
      { id: '77003', credit: 100n },
    ])
    const job = await exported('format=TRA')
    expect(job.status).toBe('DONE')
    const bytes = await fetched(job)
    expect(bytes.equals(await expected(bytes))).toBe(true)
    expect([bytes.includes('SECTION65'), bytes.includes('SECTION66')]).toEqual([true, false])
    const line = stage.service.lines.find(
      (each) => each.includes('export.axesLeftOut') && each.includes(job.id),
    )
    expect(JSON.parse(line!)).toMatchObject({ level: 'warn', exportId: job.id, axes: ['AXIS66'] })
  })
})

test('the OpenAPI document lists TRA as a format', async () => {
  const { body } = await request(`${stage.service.url}/api/v1/openapi.json`)
  const { parameters } = body.paths['/api/v1/mad/all'].get
  const of = (name: string) => parameters.find((parameter: { name: string }) => parameter.name === name)
  expect(of('format').schema.enum).toContain('TRA')
  expect(JSON.stringify(parameters)).not.toContain('not offered')
  for (const name of ['idExercice', 'startDate', 'endDate', 'journalIds'])
    expect(of(name).required ?? false).toBe(false)
})
