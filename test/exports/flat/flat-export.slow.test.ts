/** Full exports in CSV and Parquet over HTTP: files, refusals, and a service without the package. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPool } from '../../../src/db/pool.ts'
import { askParquet } from '../../support/fixtures/parquet.ts'
import { renderedFile } from '../../support/fixtures/rendered-file.ts'
import { ended, type JobAnswer, trigger } from '../../support/full-export.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { startProcess } from '../../support/process.ts'
import { request } from '../../support/service.ts'
import { type ExportStage, folderReference, setExportStage } from '../../support/stages/export-stage.ts'

let stage: ExportStage

beforeAll(async () => {
  stage = await setExportStage()
})

afterAll(() => stage?.close())

async function exported(query: Record<string, string>): Promise<JobAnswer> {
  const { body } = await trigger(stage.service.url, stage.company, query)
  return ended(stage.service.url, stage.company, body.id)
}

async function download(job: JobAnswer) {
  const response = await fetch(job.url!)
  return { headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
}

describe('an export', () => {
  test('in CSV is a file of its selection, and its status states what the file contains', async () => {
    const pool = createPool(stage.database.serviceUrl, { max: 2, applicationName: 'test' })
    const { bytes, totals: counted } = await renderedFile(pool, folders.first, 'CSV', { exerciceId: '12' })
    await pool.end()
    const job = await exported({ format: 'csv', idExercice: '12' })
    const file = await download(job)
    expect(file.bytes.equals(bytes)).toBe(true)
    expect(file.headers.get('content-type')).toBe('text/csv; charset=utf-8; header=present')
    expect(decodeURIComponent(file.headers.get('content-disposition')!)).toMatch(
      new RegExp(`${folderReference.replace(/["&]/g, '.')}_CSV_\\d{4}-\\d\\d-\\d\\d\\.csv`),
    )
    const { rows, debit, credit } = counted
    const totals = { debit: Number(debit) / 100, credit: Number(credit) / 100 }
    expect(job).toMatchObject({ status: 'DONE', size: bytes.length, rows, totals })
  })

  test('in Parquet has the rows and sums that its status states, compressed or not', async () => {
    for (const query of [{ format: 'PARQUET' }, { format: 'parquet', compression: 'zstd' }]) {
      const job = await exported(query)
      expect(job.status).toBe('DONE')
      const file = await download(job)
      const isCompressed = 'compression' in query
      const bytes = isCompressed ? zstdDecompressSync(file.bytes) : file.bytes
      expect(file.headers.get('content-type')).toBe(
        isCompressed ? 'application/zstd' : 'application/vnd.apache.parquet',
      )
      const [sums] = await askParquet(
        bytes,
        'select count(*), sum(debit)::double, sum(credit)::double from file',
      )
      expect(sums![0]!.map(Number)).toEqual([job.rows, job.totals!.debit, job.totals!.credit])
    }
  })

  test('in Parquet has the same sums for each account as the balance route, to the cent', async () => {
    const file = await download(await exported({ format: 'PARQUET', idExercice: '12' }))
    const [found] = await askParquet(
      file.bytes,
      `select account_id, account_number, sum(debit), sum(credit), sum(debit) - sum(credit) from file
       where not draft and journal_type <> 'OD_EXC' group by all order by account_number`,
    )
    const { body } = await request(
      `${stage.service.url}/api/v1/mad/balance?version=1.0.0&idExercice=12`,
      stage.company,
    )
    expect(body.length).toBeGreaterThan(5)
    expect(found).toEqual(
      // biome-ignore lint/suspicious/noExplicitAny: parsed items
      body.map(({ account, debit, credit, balance }: any) => [
        account.producerId,
        account.number,
        ...[debit, credit, balance].map((amount) => amount.toFixed(2)),
      ]),
    )
  })

  test('takes exactly the parameters of a selection', async () => {
    const refused = async (query: Record<string, string>) => {
      const { status, body } = await trigger(stage.service.url, stage.company, query)
      return [status, body.error?.details.issues]
    }
    for (const format of ['CSV', 'PARQUET']) {
      expect(await refused({ format, idExercice: '12', startDate: '2024-07-01' })).toEqual([
        400,
        expect.arrayContaining([expect.objectContaining({ parameter: 'startDate' })]),
      ])
      expect((await trigger(stage.service.url, stage.company, { format, idExercice: '9' })).status).toBe(404)
      for (const [parameter, value] of Object.entries({ encoding: 'utf-8', columns: 'extended' }))
        expect(await refused({ format, [parameter]: value })).toEqual([
          400,
          [{ parameter, message: 'is allowed only with FEC' }],
        ])
    }
  })

  test('is listed in the document of the API', async () => {
    expect(await offered(stage.service.url)).toEqual(['CSV', 'PARQUET'])
  })
})

/** The formats, of CSV and PARQUET, that the document of the API lists. */
async function offered(url: string): Promise<string[]> {
  const { body } = await request(`${url}/api/v1/openapi.json`)
  const { parameters } = body.paths['/api/v1/mad/all'].get
  const { schema } = parameters.find(({ name }: { name: string }) => name === 'format')
  return ['CSV', 'PARQUET'].filter((name) => schema.enum.includes(name))
}

describe('without the package that writes Parquet', () => {
  let root: string

  beforeAll(async () => {
    root = await checkoutWithout('@duckdb')
  })

  afterAll(() => rm(root, { recursive: true }))

  test('the service refuses the format with a reason, does not list it, and still writes CSV', async () => {
    const settings = { DATABASE_URL: stage.database.ownerUrl, DATA_DIR: join(root, 'data') }
    const service = await startProcess(settings, {}, root)
    try {
      const { status, body } = await trigger(service.url, stage.company, { format: 'parquet' })
      expect([status, body]).toMatchObject([
        400,
        {
          error: {
            code: 'ERR-VALIDATION',
            details: {
              issues: [
                { parameter: 'format', message: 'must be JSON, TRA, FEC or CSV' },
                {
                  parameter: 'format',
                  message: 'PARQUET is not offered: this service runs without the package that writes it',
                },
              ],
            },
          },
        },
      ])
      expect(await offered(service.url)).toEqual(['CSV'])
      const csv = await trigger(service.url, stage.company, { format: 'CSV', idExercice: '11' })
      expect((await ended(service.url, stage.company, csv.body.id)).status).toBe('DONE')
    } finally {
      await service.kill()
    }
  })

  test('the program that writes Parquet says that the package is missing', async () => {
    const child = spawn(process.execPath, ['src/write-parquet.ts'], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    const [message] = await once(child, 'message')
    expect(message).toEqual({ error: expect.stringContaining(`Cannot find package '@duckdb/node-api'`) })
    await once(child, 'close')
  })
})

/** A copy of this checkout that lacks the packages of a scope. */
async function checkoutWithout(scope: string): Promise<string> {
  const here = resolve(import.meta.dirname, '../../..')
  const root = await mkdtemp(join(tmpdir(), 'grandlivre-checkout-'))
  for (const folder of ['src', 'packages'])
    await cp(join(here, folder), join(root, folder), { recursive: true })
  await cp(join(here, 'package.json'), join(root, 'package.json'))
  await cp(join(here, 'test/support/service-main.ts'), join(root, 'test/support/service-main.ts'))
  await mkdir(join(root, 'node_modules'))
  for (const name of await readdir(join(here, 'node_modules')))
    if (name !== scope) await symlink(join(here, 'node_modules', name), join(root, 'node_modules', name))
  return root
}
