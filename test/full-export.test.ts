/** The full export over HTTP: triggered, polled, downloaded; what is refused; what is the same for an hour. */
import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPool, inTenant } from '../src/db/pool.ts'
import { type JobEvent, jobEvents, jobStates, transitions } from '../src/exports/job.ts'
import * as jobs from '../src/exports/jobs.sql.ts'
import { sweepExports } from '../src/exports/retention.ts'
import { openStore } from '../src/store/open-store.ts'
import { cli } from './support/cli.ts'
import { type ExportStage, folderReference, setExportStage } from './support/export-stage.ts'
import {
  downloadFile,
  ended,
  type JobAnswer,
  statusUrl,
  trigger,
  triggerAmongMany,
} from './support/full-export.ts'
import { addEntry } from './support/ledger.ts'
import { type Answer, request, startTestService, type TestService, until } from './support/service.ts'
import { folders } from './support/tenants.ts'

const { first, sameFirm, otherFirm, otherTenant } = folders

/** Both services store here. */
const folder = join(tmpdir(), `grandlivre-full-export-${process.pid}`)
const store = { kind: 'filesystem', folder } as const
const rateLimit = { requests: 1_000_000, windowMs: 10_000, concurrent: 200 }

let stage: ExportStage
let second: TestService
let url: string

beforeAll(async () => {
  stage = await setExportStage({ store, rateLimit })
  second = await startTestService(stage.database, { store, rateLimit })
  url = stage.service.url
})

afterAll(async () => {
  await second?.stop()
  await stage?.close()
  await (await import('node:fs/promises')).rm(folder, { recursive: true, force: true })
})

const asFirm = (folderId: string) => ({ ...stage.firm, 'society-id': folderId })
const sql = async (text: string, values: unknown[] = []) =>
  (await stage.staff.client.query(text, values)).rows
const issuesOf = ({ status, body }: Answer) => [
  status,
  body.error.code,
  (body.error.details.issues ?? []).map((issue: { parameter: string }) => issue.parameter).sort(),
]
/** So that the next trigger of the folder starts a new export. */
const passAnHour = () =>
  sql(`update grandlivre.exports set created_at = created_at - interval '61 minutes' where latest`)

async function storedKeys(): Promise<string[]> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  return names.filter((name) => name.isFile()).map((name) => join(name.parentPath, name.name))
}

async function exported(headers = stage.company): Promise<JobAnswer> {
  await passAnHour()
  const { body } = await trigger(url, headers)
  return ended(url, headers, body.id)
}

describe('an export', () => {
  test('goes from INIT to DONE, and its file is what the status says and what the folder holds', async () => {
    const { status, headers, body } = await trigger(url, stage.company)
    expect([status, headers.get('cache-control')]).toEqual([200, 'private, no-store'])
    expect(body).toEqual({
      id: expect.stringMatching(/^export_[0-9a-f]{32}$/),
      status: 'INIT',
      progress: { rows: 0, rowsTotal: null, bytes: 0 },
    })
    const job = await ended(url, stage.company, body.id)
    expect(Object.keys(job)).toEqual(['id', 'status', 'url', 'size', 'rows', 'sha256', 'totals'])
    const file = await downloadFile(job.url!)
    expect([file.bytes.length, file.sha256]).toEqual([job.size, job.sha256])
    expect(file.json.metadata.additionalFreeProperties).toEqual({ exportId: job.id })
    const movements = file.json.data.entries.flatMap((entry: { movements: unknown[] }) => entry.movements)
    const [sums] = await sql(
      `select count(*)::int as rows, sum(debit)::float8 / 100 as debit, sum(credit)::float8 / 100 as credit
       from grandlivre.movements where schema_id = $1 and folder_id = $2`,
      [first.schemaId, first.folderId],
    )
    expect([movements.length, job.rows, job.totals]).toEqual([
      sums.rows,
      sums.rows,
      { debit: sums.debit, credit: sums.credit },
    ])
  })

  test('has totals to the cent, however large', async () => {
    await addEntry(stage.staff.client, otherTenant, { id: '88001' }, [
      { id: '880011', debit: 900_719_925_474_099_301n },
      { id: '880012', credit: 900_719_925_474_099_299n },
      { id: '880013', credit: 2n },
    ])
    const headers = await strangers()
    const job = await exported(headers)
    const text = await (await fetch(statusUrl(url, job.id), { headers })).text()
    const [{ debit, credit }] = await sql(
      'select sum(debit)::text as debit, sum(credit)::text as credit from grandlivre.movements where schema_id = $1',
      [otherTenant.schemaId],
    )
    const decimals = (units: string) => `${units.slice(0, -2)}.${units.slice(-2)}`.replace(/\.?0+$/, '')
    expect(Number.isSafeInteger(Number(debit))).toBe(false)
    expect(text).toContain(`"totals":{"debit":${decimals(debit)},"credit":${decimals(credit)}}`)
  })

  test('gives a new address with each status, for GET, HEAD and ranges, with a name of its own', async () => {
    const { id, url: address, size } = await exported()
    expect(new URL(address!).origin).toBe(url)
    const expires = Number(new URL(address!).searchParams.get('expires'))
    expect(expires - Date.now() / 1000).toBeGreaterThan(3500)
    expect(expires - Date.now() / 1000).toBeLessThanOrEqual(3600)
    await until(async () => (await request(statusUrl(url, id), stage.company)).body.url !== address)
    const head = await fetch(address!, { method: 'HEAD' })
    expect([head.status, Number(head.headers.get('content-length'))]).toEqual([200, size])
    const day = new Intl.DateTimeFormat('sv', { timeZone: 'Europe/Paris' }).format()
    expect(decodeURIComponent(head.headers.get('content-disposition')!)).toContain(
      `filename*=UTF-8''${folderReference}_JSON_${day}.json`,
    )
    const range = await fetch(address!, { headers: { Range: 'bytes=-2' } })
    expect([range.status, await range.text()]).toEqual([206, '}}'])
    for (const reference of [null, '']) {
      await sql('update grandlivre.folders set reference = $1 where id = $2', [reference, sameFirm.folderId])
      const unnamed = await exported(asFirm(sameFirm.folderId))
      const disposition = (await fetch(unnamed.url!, { method: 'HEAD' })).headers.get('content-disposition')
      expect(disposition).toBe(`attachment; filename="${sameFirm.folderId}_JSON_${day}.json"`)
    }
  })

  test('can be read by any token that may read the folder, by way of any process', async () => {
    const { id } = await exported()
    const { body } = await request(statusUrl(second.url, id), asFirm(first.folderId))
    expect([body.id, body.status]).toEqual([id, 'DONE'])
    expect((await fetch(body.url)).status).toBe(200)
  })

  test('comes to its end also where its entry in the queue is lost', async () => {
    await passAnHour()
    const blocker = await holdExports()
    const { body } = await trigger(url, stage.company)
    await until(async () => (await blocker.waiting()) > 0)
    await sql(`delete from pgboss.job where data ->> 'exportId' = $1`, [body.id])
    const lines = () => [...stage.service.lines, ...second.lines].filter((line) => line.includes(body.id))
    await until(() => lines().some((line) => /export\.(lost|handedBack)/.test(line)))
    await blocker.release()
    const job = await ended(url, stage.company, body.id)
    expect((await downloadFile(job.url!)).sha256).toBe(job.sha256)
  })

  test('shows one state of the folder, that of its start', async () => {
    await passAnHour()
    const blocker = await holdExports()
    const { body } = await trigger(url, stage.company)
    await until(async () => (await blocker.waiting()) > 0)
    await addEntry(stage.staff.client, first, { id: '88100' }, [{ id: '881001', debit: 5n }])
    await blocker.release()
    const file = await downloadFile((await ended(url, stage.company, body.id)).url!)
    const ids = file.json.data.entries.map((entry: { producerId: string }) => entry.producerId)
    expect(ids).not.toContain('88100')
    const next = await downloadFile((await exported()).url!)
    expect(next.json.data.entries.map((entry: { producerId: string }) => entry.producerId)).toContain('88100')
  })
})

/** Exports that start from now on wait for a lock on one of the collections, until they are let go. */
async function holdExports() {
  const pool = createPool(stage.database.ownerUrl, { max: 1, applicationName: 'test blocker' })
  const client = await pool.connect()
  await client.query('begin; lock table grandlivre.banks in access exclusive mode')
  return {
    waiting: async () =>
      (
        await sql(`select count(*)::int as n from pg_locks l join pg_database d on d.oid = l.database
        where d.datname = current_database() and not granted and relation = 'grandlivre.banks'::regclass`)
      )[0].n,
    release: async () => {
      await client.query('rollback')
      client.release()
      await pool.end()
    },
  }
}

async function strangers(): Promise<Record<string, string>> {
  const secret = await stage.staff.thirdParty(
    `STRANGER-${Math.random().toString(36).slice(2, 8).toUpperCase()}`,
  )
  const [{ code }] = await sql('select code from grandlivre.third_parties order by id desc limit 1')
  const { token } = await stage.staff.token(code, 'api', otherTenant)
  return { Authorization: `Bearer ${token}`, 'X-Third-Party-Secret': secret }
}

describe('for an hour', () => {
  const row = (id: string) => sql('select state, latest from grandlivre.exports where id = $1', [id])

  test('the same parameters answer with the same export: running, done or failed', async () => {
    await passAnHour()
    const blocker = await holdExports()
    const { body } = await trigger(url, stage.company)
    const again = await trigger(second.url, asFirm(first.folderId), { format: 'json' })
    expect([again.body.id, again.body.status]).toEqual([body.id, 'INIT'])
    await blocker.release()
    await ended(url, stage.company, body.id)
    const done = await trigger(url, stage.company, { accountingFolderId: first.folderId })
    expect([done.body.id, done.body.status]).toEqual([body.id, 'DONE'])
    expect((await downloadFile(done.body.url!)).sha256).toBe(done.body.sha256)

    await passAnHour()
    const hold = await holdExports()
    const failing = (await trigger(url, stage.company)).body.id
    await cli(stage.database.ownerUrl, 'export', 'cancel', failing)
    await hold.release()
    const failed = await trigger(url, stage.company)
    expect([failed.body.id, failed.body.status]).toEqual([failing, 'FAILED'])
    const [, answered] = failed.body.reason!.match(
      /cancelled.* until ([\d-]+T[\d:]+Z), and start a new export then/,
    )!
    const [{ hour }] = await sql(
      `select created_at + interval '1 hour' as hour from grandlivre.exports where id = $1`,
      [failing],
    )
    expect(Math.ceil((Date.parse(answered!) - hour) / 1000)).toBe(1)
  })

  test('and no longer', async () => {
    const { id } = await exported()
    await sql(
      `update grandlivre.exports set created_at = clock_timestamp() - interval '59 minutes' where id = $1`,
      [id],
    )
    expect((await trigger(url, stage.company)).body.id).toBe(id)
    await sql(
      `update grandlivre.exports set created_at = clock_timestamp() - interval '61 minutes' where id = $1`,
      [id],
    )
    const next = await trigger(url, stage.company)
    expect(next.body.id).not.toBe(id)
    expect(await row(id)).toEqual([{ state: 'done', latest: false }])
    // The earlier one is still there to be read.
    expect((await request(statusUrl(url, id), stage.company)).body.status).toBe('DONE')
    await ended(url, stage.company, next.body.id)
  })

  test('another folder has another export', async () => {
    const ids = await Promise.all(
      [first, sameFirm].map(async ({ folderId }) => (await trigger(url, asFirm(folderId))).body.id),
    )
    expect(new Set(ids).size).toBe(2)
    for (const [i, { folderId }] of [first, sameFirm].entries()) await ended(url, asFirm(folderId), ids[i]!)
  })

  test('100 identical triggers at once, over two services, make one export and one file', async () => {
    await passAnHour()
    const files = (await storedKeys()).length
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        triggerAmongMany([url, second.url][i % 2]!, i % 3 ? stage.company : asFirm(first.folderId)),
      ),
    )
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    const ids = new Set(answers.map(({ body }) => body.id))
    expect(ids.size).toBe(1)
    const [id] = ids
    expect((await ended(url, stage.company, id!)).status).toBe('DONE')
    expect((await storedKeys()).length).toBe(files + 1)
    expect(
      await sql(
        `select (select count(*)::int from grandlivre.exports where folder_id = $1 and latest) as rows,
                (select count(*)::int from pgboss.job where data ->> 'exportId' = $2) as entries,
                (select attempt from grandlivre.exports where id = $2) as attempt`,
        [first.folderId, id],
      ),
    ).toEqual([{ rows: 1, entries: 1, attempt: 1 }])
  })
})

const refusals: [string, Record<string, string>, string[]][] = [
  ['no format', { format: '' }, ['format']],
  ['another format', { format: 'XML' }, ['format']],
  ['idExercice with JSON', { idExercice: '12' }, ['idExercice']],
  ['a period with JSON', { startDate: '2024-01-01', endDate: '2024-12-31' }, ['endDate', 'startDate']],
  ['journals with JSON', { journalIds: '31,32' }, ['journalIds']],
  ['a parameter there is not', { draft: '1' }, ['draft']],
  ['TRA with a year and a date', { format: 'TRA', idExercice: '12', endDate: '2024-12-31' }, ['endDate']],
  ['TRA with half a period', { format: 'tra', startDate: '2024-01-01' }, ['endDate']],
  ['TRA backwards', { format: 'TRA', startDate: '2024-01-02', endDate: '2024-01-01' }, ['endDate']],
  [
    'TRA for more than 24 months',
    { format: 'TRA', startDate: '2023-01-01', endDate: '2025-01-01' },
    ['endDate'],
  ],
  ['a day that is not', { format: 'TRA', startDate: '2023-02-30', endDate: '2024-12-31' }, ['startDate']],
  ['journals that are no ids', { format: 'TRA', journalIds: 'HA' }, ['journalIds']],
]

describe('refused', () => {
  test.each(refusals)('%s', async (_, query, parameters) => {
    expect(issuesOf(await trigger(url, stage.company, query))).toEqual([400, 'ERR-VALIDATION', parameters])
  })

  test('a parameter given twice, a missing one, an unknown version', async () => {
    const all = `${url}/api/v1/mad/all`
    const ask = (query: string) => request(`${all}?${query}`, stage.company)
    expect(issuesOf(await ask('version=1.0.0&format=JSON&format=JSON'))).toEqual([
      400,
      'ERR-VALIDATION',
      ['format'],
    ])
    expect(issuesOf(await ask(''))).toEqual([400, 'ERR-VALIDATION', ['format', 'version']])
    expect((await ask('version=2.0.0&format=JSON')).body.error.code).toBe('ERR-UNSUPPORTED-VERSION')
    expect(issuesOf(await request(`${all}/status`, stage.company))).toEqual([
      400,
      'ERR-VALIDATION',
      ['exportId'],
    ])
    const twice = await request(`${all}/status?exportId=a&exportId=b`, stage.company)
    expect(issuesOf(twice)).toEqual([400, 'ERR-VALIDATION', ['exportId']])
    expect((await request(statusUrl(url, 'a'), stage.company, 'POST')).headers.get('allow')).toBe('GET, HEAD')
  })

  test('HEAD, by which clients only look: it starts nothing', async () => {
    await passAnHour()
    const count = () => sql('select count(*) from grandlivre.exports')
    const before = await count()
    const address = `${url}/api/v1/mad/all?version=1.0.0&format=JSON`
    const looked = await request(address, stage.company, 'HEAD')
    expect([looked.status, looked.headers.get('allow'), looked.body]).toEqual([405, 'GET', ''])
    expect((await request(address, stage.company, 'POST')).headers.get('allow')).toBe('GET')
    expect(await count()).toEqual(before)
    const { id } = await exported()
    expect((await request(statusUrl(url, id), stage.company, 'HEAD')).status).toBe(200)
  })

  test('a caller without a token, and a folder that is not the firm’s', async () => {
    expect((await trigger(url, {})).status).toBe(401)
    expect((await trigger(url, stage.firm)).status).toBe(400)
    expect((await trigger(url, asFirm(otherFirm.folderId))).status).toBe(404)
    expect((await trigger(url, { ...stage.company, 'society-id': sameFirm.folderId })).status).toBe(403)
  })

  test('an export of another folder or tenant, and one that is not: the same answer', async () => {
    const { id } = await exported()
    const status = (exportId: string, headers: Record<string, string>) =>
      request(statusUrl(url, exportId), headers)
    const answers = [
      await status(id, asFirm(sameFirm.folderId)),
      await status(id, await strangers()),
      await status(`export_${'0'.repeat(32)}`, stage.company),
      ...(await Promise.all(
        [
          id.toUpperCase(),
          id.slice(0, -1),
          `${id}0`,
          `${id}\n`,
          id.slice(7),
          '',
          "export_' or 1=1",
          '\u0000',
        ].map((malformed) => status(malformed, stage.company)),
      )),
    ]
    for (const { status: code, body } of answers)
      expect([code, body.error.code, body.error.message]).toEqual([
        404,
        'ERR-EXPORT-NOT-FOUND',
        'No such export in this folder',
      ])
  })
})

describe('past its time', () => {
  const move = (id: string, ago: string) =>
    sql('update grandlivre.exports set finished_at = clock_timestamp() - $2::interval where id = $1', [
      id,
      ago,
    ])
  const sweep = async (now = new Date()) => {
    const database = createPool(stage.database.serviceUrl, { max: 2, applicationName: 'test sweep' })
    const signed = { ...store, publicUrl: url, signingKey: '00'.repeat(32) }
    try {
      return await sweepExports(
        { database, store: await openStore(signed), retentionDays: 7, log: () => {} },
        now,
      )
    } finally {
      await database.end()
    }
  }
  const status = async (id: string) => {
    const { status: code, body } = await request(statusUrl(url, id), stage.company)
    return [code, body.status ?? body.error.code]
  }

  test('an export answers 410, then its file is removed, then it is forgotten', async () => {
    await sweep()
    const { id, url: address } = await exported()
    await move(id, '6 days 23:59')
    expect(await status(id)).toEqual([200, 'DONE'])
    await move(id, '7 days 00:01')
    expect(await status(id)).toEqual([410, 'ERR-EXPORT-EXPIRED'])
    // An address that was given out just before is still good for its hour.
    expect((await sweep()).files).toBe(0)
    expect((await fetch(address!, { method: 'HEAD' })).status).toBe(200)
    await move(id, '7 days 01:01')
    expect(await sweep()).toMatchObject({ files: 1, rows: 0, orphans: 0 })
    expect((await fetch(address!, { method: 'HEAD' })).status).toBe(410)
    expect(await status(id)).toEqual([410, 'ERR-EXPORT-EXPIRED'])
    await move(id, '38 days')
    expect(await sweep()).toMatchObject({ files: 0, rows: 1 })
    expect(await status(id)).toEqual([404, 'ERR-EXPORT-NOT-FOUND'])
  })

  test('a file that no export names is removed, but not while it is fresh; other things stay', async () => {
    const { id } = await exported()
    const objects = await openStore({ ...store, publicUrl: url, signingKey: '00'.repeat(32) })
    const strays = [
      `exports/100/${id}/1-${'0'.repeat(16)}.json`,
      `exports/100/export_${'0'.repeat(32)}/1-${'0'.repeat(16)}.json`,
    ]
    for (const key of [...strays, 'backup/of-others.json']) {
      const writer = await objects.create(key, 'application/json')
      await writer.write(Buffer.from('{}'))
      await writer.complete({ bytes: 2 })
    }
    const unfinished = await objects.create(`exports/100/${id}/9-${'0'.repeat(16)}.json`, 'application/json')
    await unfinished.write(Buffer.from('{'))
    expect(await sweep()).toMatchObject({ orphans: 0, unfinished: 0 })
    const files = (await storedKeys()).length
    expect(await sweep(new Date(Date.now() + 2 * 3_600_000))).toMatchObject({ orphans: 2, unfinished: 0 })
    expect(await sweep(new Date(Date.now() + 25 * 3_600_000))).toMatchObject({ orphans: 0, unfinished: 1 })
    expect((await storedKeys()).length).toBe(files - 3)
    expect((await storedKeys()).filter((key) => key.endsWith('of-others.json'))).toHaveLength(1)
    expect(await status(id)).toEqual([200, 'DONE'])
    await objects.remove('backup/of-others.json')
    await unfinished.abort()
  })

  test('a file is kept while its export runs: it may be about to be named', async () => {
    const id = `export_${'d'.repeat(32)}`
    await sql(
      `insert into grandlivre.exports (schema_id, id, folder_id, version, format, identity, request_id, state, attempt)
       values ($1, $2, $3, '1.0.0', 'JSON', $4, 'request', 'running', 1)`,
      [first.schemaId, id, first.folderId, 'd'.repeat(64)],
    )
    const objects = await openStore({ ...store, publicUrl: url, signingKey: '00'.repeat(32) })
    const key = `exports/${first.schemaId}/${id}/1-${'0'.repeat(16)}.json`
    const writer = await objects.create(key, 'application/json')
    await writer.complete({ bytes: 0 })
    const later = new Date(Date.now() + 2 * 3_600_000)
    expect(await sweep(later)).toMatchObject({ orphans: 0 })
    await sql(
      `update grandlivre.exports set state = 'failed', finished_at = now(), reason = 'reason' where id = $1`,
      [id],
    )
    expect(await sweep(later)).toMatchObject({ orphans: 1 })
  })

  test('an export that never came to its end has failed', async () => {
    const id = `export_${'f'.repeat(32)}`
    await sql(
      `insert into grandlivre.exports (schema_id, id, folder_id, version, format, identity, request_id, created_at)
       values ($1, $2, $3, '1.0.0', 'JSON', $4, 'request-old', clock_timestamp() - interval '8 days')`,
      [first.schemaId, id, first.folderId, 'f'.repeat(64)],
    )
    expect(await status(id)).toEqual([200, 'INIT'])
    expect((await sweep()).forgotten).toBe(1)
    const { body } = await request(statusUrl(url, id), stage.company)
    expect(body).toEqual({ id, status: 'FAILED', reason: expect.stringContaining('request-old') })
  })
})

describe('staff', () => {
  test('cancels a running export: it has failed, its process stops, nothing stays in the store', async () => {
    await passAnHour()
    const files = await storedKeys()
    const blocker = await holdExports()
    const { body } = await trigger(url, stage.company)
    await until(async () => (await blocker.waiting()) > 0)
    const cancelled = await cli(
      stage.database.ownerUrl,
      'export',
      'cancel',
      body.id,
      '--reason',
      'the disk is replaced',
    )
    expect(cancelled).toEqual({ code: 0, out: `The export ${body.id} is cancelled.\n`, error: '' })
    const { reason, status } = await ended(url, stage.company, body.id)
    expect([status, reason]).toEqual(['FAILED', expect.stringContaining('They say: the disk is replaced.')])
    // It stops by itself while the database still lets it wait.
    await until(async () => (await blocker.waiting()) === 0)
    const lines = () => [...stage.service.lines, ...second.lines].filter((line) => line.includes(body.id))
    await until(() => lines().some((line) => line.includes('export.lost')))
    await blocker.release()
    expect(await storedKeys()).toEqual(files)
    expect(lines().some((line) => line.includes('export.done'))).toBe(false)
    const again = await cli(stage.database.ownerUrl, 'export', 'cancel', body.id)
    expect(again).toMatchObject({ code: 1, error: expect.stringContaining('is failed already') })
  })

  test('lists and shows exports', async () => {
    const { id, sha256 } = await exported()
    const list = await cli(
      stage.database.ownerUrl,
      'export',
      'list',
      '--folder',
      first.folderId,
      '--state',
      'done',
    )
    expect(list.out).toMatch(new RegExp(`^${id} +${first.folderId} +JSON +done +1 +(\\d+)/\\1 `, 'm'))
    const show = await cli(stage.database.ownerUrl, 'export', 'show', id)
    expect(show.out).toContain(sha256)
    const none = await cli(stage.database.ownerUrl, 'export', 'show', 'export_none')
    expect(none).toMatchObject({ code: 1, error: 'There is no export export_none: see export list\n' })
  })
})

test('the statements change states as the table of transitions says, and no final one', async () => {
  const id = `export_${'e'.repeat(32)}`
  const claim = { schemaId: first.schemaId, exportId: id, attempt: 1 }
  const file = {
    fileKey: 'k',
    rows: 1,
    bytes: 1,
    sha256: '0'.repeat(64),
    debit: 1n,
    credit: 1n,
    snapshotOn: '2026-01-01',
  }
  const events: Record<JobEvent, (client: import('pg').PoolClient, key: jobs.Claim) => Promise<unknown>> = {
    take: (client, key) => jobs.takeExport(client, key),
    release: (client, key) => jobs.releaseExport(client, key),
    finish: (client, key) => jobs.finishExport(client, key, file),
    fail: (client, key) => jobs.failExport(client, key, 'reason'),
    end: (client, key) => jobs.endExport(client, key, 'reason'),
  }
  const prepare: Record<string, string> = {
    queued: `state = 'queued'`,
    running: `state = 'running'`,
    done: `state = 'done', finished_at = now(), sha256 = repeat('0', 64), debit = 1, credit = 1, snapshot_on = now()`,
    failed: `state = 'failed', finished_at = now(), reason = 'reason'`,
  }
  const pool = createPool(stage.database.serviceUrl, { max: 1, applicationName: 'test states' })
  const owner = stage.staff.client
  const attempted = async (state: string, event: JobEvent, attempt: number) => {
    await owner.query('delete from grandlivre.exports where id = $1', [id])
    await owner.query(
      `insert into grandlivre.exports (schema_id, id, folder_id, version, format, identity, request_id, attempt)
       values ($1, $2, $3, '1.0.0', 'JSON', repeat('e', 64), 'request', 1)`,
      [first.schemaId, id, first.folderId],
    )
    await owner.query(`update grandlivre.exports set ${prepare[state]} where id = $1`, [id])
    await inTenant(pool, first.schemaId, (client) => events[event](client, { ...claim, attempt }))
    return (await sql('select state from grandlivre.exports where id = $1', [id]))[0].state
  }
  for (const state of jobStates)
    for (const event of jobEvents)
      expect(await attempted(state, event, 1), `${state}, ${event}`).toBe(transitions[state][event] ?? state)
  // What a process says of an attempt that is no longer its own changes nothing.
  for (const event of ['release', 'finish', 'fail'] as const)
    for (const attempt of [0, 2]) expect(await attempted('running', event, attempt), event).toBe('running')
  await attempted('done', 'take', 1)
  await expect(
    owner.query(`update grandlivre.exports set state = 'queued' where id = $1`, [id]),
  ).rejects.toThrow('final')
  await owner.query('delete from grandlivre.exports where id = $1', [id])
  await pool.end()
})
