/** The full export over HTTP: trigger, poll, download, and sharing one export for an hour. */
import { describe, expect, test } from 'vitest'
import { cli } from '../support/cli.ts'
import { forTests } from '../support/for-tests.ts'
import { downloadFile, ended, statusUrl, trigger } from '../support/full-export.ts'
import { addEntry } from '../support/ledgers/ledger.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { request } from '../support/service.ts'
import { folderReference } from '../support/stages/export-stage.ts'
import { setTwoServices } from '../support/stages/two-services.ts'
import { until } from '../support/until.ts'

const { first, sameFirm, otherTenant } = folders

const stage = forTests(setTwoServices)

describe('an export', () => {
  test('goes from INIT to DONE, with a file that matches its status and the folder', async () => {
    const { status, headers, body } = await trigger(stage.url, stage.company)
    expect([status, headers.get('cache-control')]).toEqual([200, 'private, no-store'])
    expect(body).toEqual({
      id: expect.stringMatching(/^export_[0-9a-f]{32}$/),
      status: 'INIT',
      progress: { rows: 0, rowsTotal: null, bytes: 0 },
    })
    const job = await ended(stage.url, stage.company, body.id)
    const sizes = ['size', 'fileSha256', 'contentSize', 'rows', 'sha256', 'totals']
    expect(Object.keys(job)).toEqual(['id', 'status', 'url', ...sizes])
    const file = await downloadFile(job.url!)
    expect([file.bytes.length, file.sha256]).toEqual([job.size, job.fileSha256])
    expect([job.contentSize, job.sha256]).toEqual([job.size, job.fileSha256])
    expect(file.json.metadata.additionalFreeProperties).toEqual({ exportId: job.id })
    const movements = file.json.data.entries.flatMap((entry: { movements: unknown[] }) => entry.movements)
    const [sums] = await stage.sql(
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

  test('has totals exact to the cent, however large', async () => {
    await addEntry(stage.staff.client, otherTenant, { id: '88001' }, [
      { id: '880011', debit: 900_719_925_474_099_301n },
      { id: '880012', credit: 900_719_925_474_099_299n },
      { id: '880013', credit: 2n },
    ])
    const headers = await stage.strangers()
    const job = await stage.exported(headers)
    const text = await (await fetch(statusUrl(stage.url, job.id), { headers })).text()
    const [{ debit, credit }] = await stage.sql(
      'select sum(debit)::text as debit, sum(credit)::text as credit from grandlivre.movements where schema_id = $1',
      [otherTenant.schemaId],
    )
    const decimals = (units: string) => `${units.slice(0, -2)}.${units.slice(-2)}`.replace(/\.?0+$/, '')
    expect(Number.isSafeInteger(Number(debit))).toBe(false)
    expect(text).toContain(`"totals":{"debit":${decimals(debit)},"credit":${decimals(credit)}}`)
  })

  test('gives a new download address with each status, for GET, HEAD and ranges; the file name has folder, format and day', async () => {
    const { id, url: address, size } = await stage.exported()
    expect(new URL(address!).origin).toBe(stage.url)
    const expires = Number(new URL(address!).searchParams.get('expires'))
    expect(expires - Date.now() / 1000).toBeGreaterThan(3500)
    expect(expires - Date.now() / 1000).toBeLessThanOrEqual(3600)
    await until(async () => (await request(statusUrl(stage.url, id), stage.company)).body.url !== address)
    const head = await fetch(address!, { method: 'HEAD' })
    expect([head.status, Number(head.headers.get('content-length'))]).toEqual([200, size])
    const day = new Intl.DateTimeFormat('sv', { timeZone: 'Europe/Paris' }).format()
    expect(decodeURIComponent(head.headers.get('content-disposition')!)).toContain(
      `filename*=UTF-8''${folderReference}_JSON_${day}.json`,
    )
    const range = await fetch(address!, { headers: { Range: 'bytes=-2' } })
    expect([range.status, await range.text()]).toEqual([206, '}}'])
    for (const reference of [null, '']) {
      await stage.sql('update grandlivre.folders set reference = $1 where id = $2', [
        reference,
        sameFirm.folderId,
      ])
      const unnamed = await stage.exported(stage.asFirm(sameFirm.folderId))
      const disposition = (await fetch(unnamed.url!, { method: 'HEAD' })).headers.get('content-disposition')
      expect(disposition).toBe(`attachment; filename="${sameFirm.folderId}_JSON_${day}.json"`)
    }
  })

  test('can be read with any token that opens the folder, from any process', async () => {
    const { id } = await stage.exported()
    const { body } = await request(statusUrl(stage.second.url, id), stage.asFirm(first.folderId))
    expect([body.id, body.status]).toEqual([id, 'DONE'])
    expect((await fetch(body.url)).status).toBe(200)
  })

  test('finishes even if its entry in the queue is lost', async () => {
    await stage.passAnHour()
    const blocker = await stage.holdExports()
    const { body } = await trigger(stage.url, stage.company)
    await until(async () => (await blocker.waiting()) > 0)
    await stage.sql(`delete from pgboss.job where data ->> 'exportId' = $1`, [body.id])
    const lines = () =>
      [...stage.service.lines, ...stage.second.lines].filter((line) => line.includes(body.id))
    await until(() => lines().some((line) => /export\.(lost|requeued)/.test(line)))
    await blocker.release()
    const job = await ended(stage.url, stage.company, body.id)
    expect((await downloadFile(job.url!)).sha256).toBe(job.sha256)
  })

  test('shows the folder as it was when the export started', async () => {
    await stage.passAnHour()
    const blocker = await stage.holdExports()
    const { body } = await trigger(stage.url, stage.company)
    await until(async () => (await blocker.waiting()) > 0)
    await addEntry(stage.staff.client, first, { id: '88100' }, [{ id: '881001', debit: 5n }])
    await blocker.release()
    const file = await downloadFile((await ended(stage.url, stage.company, body.id)).url!)
    const ids = file.json.data.entries.map((entry: { producerId: string }) => entry.producerId)
    expect(ids).not.toContain('88100')
    const next = await downloadFile((await stage.exported()).url!)
    expect(next.json.data.entries.map((entry: { producerId: string }) => entry.producerId)).toContain('88100')
  })
})

describe('within an hour', () => {
  const row = (id: string) => stage.sql('select state, latest from grandlivre.exports where id = $1', [id])

  test('the same parameters return the same export: running, done or failed', async () => {
    await stage.passAnHour()
    const blocker = await stage.holdExports()
    const { body } = await trigger(stage.url, stage.company)
    const again = await trigger(stage.second.url, stage.asFirm(first.folderId), { format: 'json' })
    expect([again.body.id, again.body.status]).toEqual([body.id, 'INIT'])
    await blocker.release()
    await ended(stage.url, stage.company, body.id)
    const done = await trigger(stage.url, stage.company, { accountingFolderId: first.folderId })
    expect([done.body.id, done.body.status]).toEqual([body.id, 'DONE'])
    expect((await downloadFile(done.body.url!)).sha256).toBe(done.body.sha256)

    await stage.passAnHour()
    const hold = await stage.holdExports()
    const failing = (await trigger(stage.url, stage.company)).body.id
    await cli(stage.database.ownerUrl, 'export', 'cancel', failing)
    await hold.release()
    const failed = await trigger(stage.url, stage.company)
    expect([failed.body.id, failed.body.status]).toEqual([failing, 'FAILED'])
    const [, sharedUntil] = failed.body.reason!.match(
      /cancelled.* until ([\d-]+T[\d:]+Z), and start a new export after that/,
    )!
    const [{ hour }] = await stage.sql(
      `select created_at + interval '1 hour' as hour from grandlivre.exports where id = $1`,
      [failing],
    )
    expect(Math.ceil((Date.parse(sharedUntil!) - hour) / 1000)).toBe(1)
  })

  test('and after an hour a new export starts', async () => {
    const { id } = await stage.exported()
    await stage.sql(
      `update grandlivre.exports set created_at = clock_timestamp() - interval '59 minutes' where id = $1`,
      [id],
    )
    expect((await trigger(stage.url, stage.company)).body.id).toBe(id)
    await stage.sql(
      `update grandlivre.exports set created_at = clock_timestamp() - interval '61 minutes' where id = $1`,
      [id],
    )
    const next = await trigger(stage.url, stage.company)
    expect(next.body.id).not.toBe(id)
    expect(await row(id)).toEqual([{ state: 'done', latest: false }])
    // The earlier one can still be read.
    expect((await request(statusUrl(stage.url, id), stage.company)).body.status).toBe('DONE')
    await ended(stage.url, stage.company, next.body.id)
  })

  test('order, repetition and leading zeros of journals do not matter', async () => {
    await stage.passAnHour()
    const ids = new Set<string>()
    for (const journalIds of ['33,31', '31,33,31', '031,33'])
      ids.add((await trigger(stage.url, stage.company, { format: 'TRA', journalIds })).body.id)
    expect(ids.size).toBe(1)
    await ended(stage.url, stage.company, [...ids][0]!)
  })

  test('another folder gets its own export', async () => {
    const ids = await Promise.all(
      [first, sameFirm].map(
        async ({ folderId }) => (await trigger(stage.url, stage.asFirm(folderId))).body.id,
      ),
    )
    expect(new Set(ids).size).toBe(2)
    for (const [i, { folderId }] of [first, sameFirm].entries())
      await ended(stage.url, stage.asFirm(folderId), ids[i]!)
  })
})
