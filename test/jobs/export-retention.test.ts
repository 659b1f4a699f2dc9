/** How exports and their files expire, and how orphans are removed. */
import { describe, expect, test } from 'vitest'
import { createPool } from '../../src/db/pool.ts'
import { sweepExports } from '../../src/jobs/retention/retention.ts'
import { openStore } from '../../src/store/open-store.ts'
import { defaultTiming } from '../../src/timing.ts'
import { forTests } from '../support/for-tests.ts'
import { statusUrl } from '../support/full-export.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { request } from '../support/service.ts'
import { setTwoServices } from '../support/stages/two-services.ts'

const { first } = folders

const stage = forTests(setTwoServices)

describe('retention', () => {
  /** The store of the services. Its links, signed with another key, are not used. */
  const openObjects = () =>
    openStore({ ...stage.store, publicUrl: stage.url, signingKeys: ['00'.repeat(32)] }, defaultTiming.store)
  const age = (id: string, ago: string) =>
    stage.sql('update grandlivre.exports set finished_at = clock_timestamp() - $2::interval where id = $1', [
      id,
      ago,
    ])
  const sweep = async (now = new Date()) => {
    const database = createPool(stage.database.serviceUrl, { max: 2, applicationName: 'test sweep' })
    try {
      return await sweepExports({ database, store: await openObjects(), retentionDays: 7 }, now)
    } finally {
      await database.end()
    }
  }
  const status = async (id: string) => {
    const { status: code, body } = await request(statusUrl(stage.url, id), stage.company)
    return [code, body.status ?? body.error.code]
  }

  test('an expired export first answers 410, then loses its file, then its row', async () => {
    await sweep()
    const { id, url: address } = await stage.exported(stage.company, { compression: 'zstd' })
    expect(address).toContain('.json.zst?')
    await age(id, '6 days 23:59')
    expect(await status(id)).toEqual([200, 'DONE'])
    await age(id, '7 days 00:01')
    expect(await status(id)).toEqual([410, 'ERR-EXPORT-EXPIRED'])
    // An address issued just before remains valid for its hour.
    expect((await sweep()).files).toBe(0)
    expect((await fetch(address!, { method: 'HEAD' })).status).toBe(200)
    await age(id, '7 days 01:01')
    expect(await sweep()).toMatchObject({ files: 1, rows: 0, orphans: 0 })
    expect((await fetch(address!, { method: 'HEAD' })).status).toBe(410)
    expect(await status(id)).toEqual([410, 'ERR-EXPORT-EXPIRED'])
    await age(id, '38 days')
    expect(await sweep()).toMatchObject({ files: 0, rows: 1 })
    expect(await status(id)).toEqual([404, 'ERR-EXPORT-NOT-FOUND'])
  })

  test('an orphaned file is removed once it is old enough; foreign files stay', async () => {
    const { id } = await stage.exported()
    const objects = await openObjects()
    const strays = [
      `exports/100/${id}/1-${'0'.repeat(16)}.json`,
      `exports/100/export_${'0'.repeat(32)}/1-${'0'.repeat(16)}.json`,
      `exports/100/${id}/1-${'0'.repeat(16)}.tra.gz`,
    ]
    for (const key of [...strays, 'backup/of-others.json']) {
      const writer = await objects.create(key, 'application/json')
      await writer.write(Buffer.from('{}'))
      await writer.complete({ bytes: 2 })
    }
    const unfinished = await objects.create(
      `exports/100/${id}/9-${'0'.repeat(16)}.tra.gz`,
      'application/gzip',
    )
    await unfinished.write(Buffer.from('{'))
    expect(await sweep()).toMatchObject({ orphans: 0, unfinished: 0 })
    const files = (await stage.storedKeys()).length
    expect(await sweep(new Date(Date.now() + 2 * 3_600_000))).toMatchObject({ orphans: 3, unfinished: 0 })
    expect(await sweep(new Date(Date.now() + 25 * 3_600_000))).toMatchObject({ orphans: 0, unfinished: 1 })
    expect((await stage.storedKeys()).length).toBe(files - 4)
    expect((await stage.storedKeys()).filter((key) => key.endsWith('of-others.json'))).toHaveLength(1)
    expect(await status(id)).toEqual([200, 'DONE'])
    await objects.remove('backup/of-others.json')
    await unfinished.abort()
  })

  test('the file of a running export is kept, although no row names it yet', async () => {
    const id = `export_${'d'.repeat(32)}`
    await stage.sql(
      `insert into grandlivre.exports (schema_id, id, folder_id, version, format, identity, request_id, state, attempt)
       values ($1, $2, $3, '1.0.0', 'JSON', $4, 'request', 'running', 1)`,
      [first.schemaId, id, first.folderId, 'd'.repeat(64)],
    )
    const objects = await openObjects()
    const key = `exports/${first.schemaId}/${id}/1-${'0'.repeat(16)}.json`
    const writer = await objects.create(key, 'application/json')
    await writer.complete({ bytes: 0 })
    const later = new Date(Date.now() + 2 * 3_600_000)
    expect(await sweep(later)).toMatchObject({ orphans: 0 })
    await stage.sql(
      `update grandlivre.exports set state = 'failed', finished_at = now(), reason = 'reason' where id = $1`,
      [id],
    )
    expect(await sweep(later)).toMatchObject({ orphans: 1 })
  })

  test('an export that never ended is marked as FAILED', async () => {
    const id = `export_${'f'.repeat(32)}`
    await stage.sql(
      `insert into grandlivre.exports (schema_id, id, folder_id, version, format, identity, request_id, created_at)
       values ($1, $2, $3, '1.0.0', 'JSON', $4, 'request-old', clock_timestamp() - interval '8 days')`,
      [first.schemaId, id, first.folderId, 'f'.repeat(64)],
    )
    expect(await status(id)).toEqual([200, 'INIT'])
    const objects = await openObjects()
    const key = `exports/${first.schemaId}/${id}/1-${'0'.repeat(16)}.json`
    // The object is new, but its attempt has ended.
    const writer = await objects.create(key, 'application/json')
    const files = (await stage.storedKeys()).length
    expect((await sweep()).forgotten).toBe(1)
    expect((await stage.storedKeys()).length).toBe(files - 1)
    await writer.abort()
    const { body } = await request(statusUrl(stage.url, id), stage.company)
    expect(body).toEqual({ id, status: 'FAILED', reason: expect.stringContaining('request-old') })
  })
})
