/** The commands by which staff list, show and cancel exports. */
import { describe, expect, test } from 'vitest'
import { cli } from '../support/cli.ts'
import { forTests } from '../support/for-tests.ts'
import { ended, trigger } from '../support/full-export.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { setTwoServices } from '../support/stages/two-services.ts'
import { until } from '../support/until.ts'

const { first } = folders

const stage = forTests(setTwoServices)
const staff = (words: string, ...more: string[]) => cli(stage.database.ownerUrl, ...words.split(' '), ...more)

describe('the command export', () => {
  test('lists and shows exports', async () => {
    const { id } = await stage.exported()
    const compressed = await stage.exported(stage.company, { format: 'TRA', compression: 'gzip' })
    const list = await staff(`export list --state done --folder ${first.folderId.padStart(16, '0')}`)
    expect(list.out).toMatch(new RegExp(`^${id} +${first.folderId} .* JSON +done +1 +(\\d+)/\\1 `, 'm'))
    expect(list.out).toMatch(new RegExp(`^${compressed.id} +${first.folderId} .* TRA\\+gzip +done `, 'm'))
    await stage.sql(`update grandlivre.exports set notes = '{"drafts":2}' where id = $1`, [compressed.id])
    const show = await staff(`export show ${compressed.id}`)
    const lines = Object.fromEntries(show.out.split('\n').map((line) => line.split(/ {2,}/)))
    expect(lines).toMatchObject({
      format: 'TRA',
      compression: 'gzip',
      'file size': String(compressed.size),
      'file sha-256': compressed.fileSha256,
      content: String(compressed.contentSize),
      'content sha-256': compressed.sha256,
      notes: '{"drafts":2}',
    })
    const none = await staff('export show export_none')
    expect(none).toMatchObject({ code: 1, error: 'There is no export export_none: see export list\n' })
  })

  test.each([
    ['a running export', {}],
    ['one whose file is compressed', { compression: 'zstd' }],
  ])('cancels %s: it fails, stops reading and leaves no file in the store', async (_, query) => {
    await stage.passAnHour()
    const files = await stage.storedKeys()
    const blocker = await stage.holdExports()
    const { body } = await trigger(stage.url, stage.company, query)
    await until(async () => (await blocker.waiting()) > 0)
    const cancelled = await staff(`export cancel ${body.id} --reason`, 'the disk is replaced')
    expect(cancelled).toEqual({ code: 0, out: `The export ${body.id} is cancelled.\n`, error: '' })
    const { reason, status } = await ended(stage.url, stage.company, body.id)
    expect([status, reason]).toEqual(['FAILED', expect.stringContaining('They say: the disk is replaced.')])
    // It stops while its query still waits for the lock.
    await until(async () => (await blocker.waiting()) === 0)
    const lines = () =>
      [...stage.service.lines, ...stage.second.lines].filter((line) => line.includes(body.id))
    await until(() => lines().some((line) => line.includes('export.lost')))
    await blocker.release()
    expect(await stage.storedKeys()).toEqual(files)
    expect(lines().some((line) => line.includes('export.done'))).toBe(false)
    const again = await staff(`export cancel ${body.id}`)
    expect(again).toMatchObject({ code: 1, error: expect.stringContaining('is already failed') })
    const [act, ...more] = await stage.sql(
      `select folder_id as folder, details from grandlivre.audit_rows
       where act = 'export cancel' and details::json->>'exportId' = $1`,
      [body.id],
    )
    expect([act.folder, JSON.parse(act.details), more]).toEqual([
      first.folderId,
      { exportId: body.id, reason: 'the disk is replaced' },
      [],
    ])
  })
})
