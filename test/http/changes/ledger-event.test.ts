/** The events that a subscriber to `ledger` gets, and the changes that it then reads. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { movementsUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { startReceiver } from '../../support/receiver.ts'
import { request, startTestService, type TestService } from '../../support/service.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'
import { until } from '../../support/until.ts'

const settings = { webhookAllowInsecure: true }
const year = { idExercice: '12' }

const stage = forTests(() => setExportStage(settings))
const receiver = forTests(() => startReceiver(stage.company['X-Third-Party-Secret']!))
/** A service with another time zone, which a later test starts. */
let later: TestService

beforeAll(async () => {
  const { status } = await fetch(`${stage.service.url}/api/v1/webhook`, {
    method: 'POST',
    headers: { ...stage.company, 'content-type': 'application/json' },
    body: JSON.stringify({ postUrl: `${receiver.url}/ledger`, onEvents: ['ledger'] }),
  })
  expect(status).toBe(201)
})

afterAll(async () => {
  await later?.stop()
})

const read = ({ url }: TestService, query: Record<string, string> = {}) =>
  request(movementsUrl(url, { ...year, ...query }), { ...stage.company, Accept: 'application/x-ndjson' })

let told = 0

/** Changes an entry of the folder as another program would. @returns the cursor in the event */
async function changed(entry: string): Promise<string> {
  await stage.staff.client.query(
    `update grandlivre.entries set comment = comment || 'x' where folder_id in (111, 112) and id = ${entry}`,
  )
  await until(() => receiver.accepted('/ledger').length > told)
  const events = receiver.accepted('/ledger').slice(told)
  told += events.length
  expect(events.map(({ name, operation, scope }) => [name, operation, scope['accountingFolderId']])).toEqual([
    ['ledger', 'UPDATE', 111],
  ])
  return events[0]!.data.cursor
}

const firstLine = ({ body }: { body: string }) => JSON.parse(body.split('\n')[0]!)

test('a ledger event has the cursor of the next answer, and the cursor before the event gives the change', async () => {
  const before = await read(stage.service)
  const since = before.headers.get('x-ledger-cursor')!
  const cursor = await changed('39')
  const after = await read(stage.service)
  expect(cursor).not.toBe(since)
  expect(after.headers.get('x-ledger-cursor')).toBe(cursor)
  expect(firstLine(await read(stage.service, { since }))).toEqual({ since, cursor, entries: [['39', '39']] })
  expect(firstLine(await read(stage.service, { since: cursor }))).toEqual({
    since: cursor,
    cursor,
    entries: [],
  })
})

test('after a restart with another time zone events have new cursors, and the former ones are refused with 410', async () => {
  const former = await changed('39')
  await stage.staff.client.query(
    `update grandlivre.ledger_changes set logged_at = now() - interval '31 days' where folder_id = 112`,
  )
  later = await startTestService(stage.database, {
    ...settings,
    timeZone: 'Pacific/Auckland',
    changesRetentionDays: 30,
  })
  const cursor = await changed('39')
  expect((await read(later)).headers.get('x-ledger-cursor')).toBe(cursor)
  expect(firstLine(await read(later, { since: cursor }))).toMatchObject({ cursor, entries: [] })
  const refused = await read(later, { since: former })
  expect([refused.status, refused.body.error?.code]).toEqual([410, 'ERR-CURSOR-EXPIRED'])
})

test('a service that starts cleans the log of changes, and logs this', async () => {
  const swept = () => later.lines.find((line) => line.includes('"retention.changesSwept"'))
  await until(() => swept() !== undefined)
  expect(JSON.parse(swept()!)).toMatchObject({ forgotten: expect.any(Number), compacted: 0 })
  // Each folder keeps one mark: that of its beginning, or of the last forgotten change.
  const { rows } = await stage.staff.client.query(
    `select folder_id, count(*) filter (where kind = 'forgotten')::int as marks,
       count(*) filter (where kind <> 'forgotten' and logged_at < now() - interval '30 days')::int as old
     from grandlivre.ledger_changes where folder_id in (111, 112) group by folder_id order by folder_id`,
  )
  expect(rows).toEqual([
    { folder_id: '111', marks: 1, old: 0 },
    { folder_id: '112', marks: 1, old: 0 },
  ])
})
