/** Requests that wait for a change of the ledger (docs/spec/changes.md#waiting), through the whole service. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { RequestSlots } from '../../../src/auth/request-slots.ts'
import { createLog } from '../../../src/log.ts'
import { readDelta } from '../../support/changes/apply-delta.ts'
import { type Download, download, movementsUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { startTestService } from '../../support/service.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'
import { until } from '../../support/until.ts'

const stage = forTests(setExportStage)

const ndjson = { Accept: 'application/x-ndjson' }

function ask(query: Record<string, string>, headers = {}, url = stage.service.url): Promise<Download> {
  return download(movementsUrl(url, { idExercice: '12', ...query }), {
    ...stage.company,
    ...ndjson,
    ...headers,
  })
}

async function currentCursor(): Promise<string> {
  return (await ask({ entries: '0-0' })).headers['x-ledger-cursor'] as string
}

let changes = 0
const change = () =>
  stage.staff.client.query(
    `update grandlivre.entries set comment = 'change ${++changes}' where schema_id = 100 and folder_id = 111 and id = 39`,
  )

/** The sessions of the service with this application name, each with its last statement. */
async function backends(name: string): Promise<{ pid: number; query: string }[]> {
  const { rows } = await stage.staff.client.query(
    'select pid, query from pg_stat_activity where datname = current_database() and application_name = $1',
    [name],
  )
  return rows
}

async function slotLocks(): Promise<number> {
  const { rows } = await stage.staff.client.query(
    `select count(*)::int as count from pg_locks l join pg_stat_activity a using (pid)
     where l.locktype = 'advisory' and a.application_name = 'grandlivre request slots' and a.datname = current_database()`,
  )
  return rows[0].count
}

const isListening = async () => (await backends('grandlivre notifications')).length === 1

test('more requests than slots can wait, as they hold none; a commit answers each with the changes', async () => {
  const since = await currentCursor()
  let answered = 0
  const waiting = Array.from({ length: 25 }, () =>
    ask({ since, wait: '30' }).then((answer) => {
      answered++
      return answer
    }),
  )
  await until(isListening)
  // Meanwhile another request is served, and the waiting ones hold no slot.
  expect((await ask({})).status).toBe(200)
  await until(async () => (await slotLocks()) === 0)
  expect(answered).toBe(0)
  await change()
  for (const { status, text } of await Promise.all(waiting)) {
    expect(status, text).toBe(200)
    const { cursor, entries, lines } = readDelta(text)
    expect(cursor).not.toBe(since)
    expect(entries).toEqual([['39', '39']])
    expect(lines.length).toBeGreaterThan(0)
  }
  await until(async () => (await slotLocks()) === 0)
})

test('a request does not wait if there is a change already', async () => {
  const since = await currentCursor()
  await change()
  const { text } = await ask({ since, wait: '30' })
  expect(readDelta(text).entries).toEqual([['39', '39']])
})

test('a request whose time is over is answered as unchanged', async () => {
  const since = await currentCursor()
  const first = await ask({ since, wait: '1' })
  expect(first.status).toBe(200)
  expect(readDelta(first.text)).toEqual({ since, cursor: since, entries: [], lines: [] })
})

test('a change that no line shows ends the wait, and only the cursor is newer', async () => {
  const since = await currentCursor()
  const waiting = ask({ since, wait: '30' })
  await until(isListening)
  await stage.staff.client.query(
    `update grandlivre.folders set name = name || '.' where schema_id = 100 and id = 111`,
  )
  const { cursor, entries, lines } = readDelta((await waiting).text)
  expect(cursor).not.toBe(since)
  expect([entries, lines]).toEqual([[], []])
})

test('a commit is noticed even if the listening connection is lost at that moment', async () => {
  const since = await currentCursor()
  const waiting = ask({ since, wait: '30' })
  await until(isListening)
  const [{ pid } = { pid: 0 }] = await backends('grandlivre notifications')
  await stage.staff.client.query('begin')
  await change()
  await stage.staff.client.query('select pg_terminate_backend($1)', [pid])
  await stage.staff.client.query('commit')
  expect(readDelta((await waiting).text).entries).toEqual([['39', '39']])
})

test('a service that stops answers waiting requests as unchanged', async () => {
  // The service of the stage may or may not listen: it lost its connection in the test before.
  const before = new Set((await backends('grandlivre notifications')).map(({ pid }) => pid))
  const other = await startTestService(stage.database)
  const since = await currentCursor()
  const waiting = ask({ since, wait: '30' }, {}, other.url)
  await until(async () => (await backends('grandlivre notifications')).some(({ pid }) => !before.has(pid)))
  await other.stop()
  expect(readDelta((await waiting).text)).toMatchObject({ cursor: since, entries: [] })
})

test.each([
  [{ wait: '5' }, 'wait', 'is only taken with since'],
  [{ since: 'x', wait: '31' }, 'wait', '30'],
  [{ since: 'x', wait: '1.5' }, 'wait', '30'],
])('a wait is refused with %j', async (query, parameter, message) => {
  const { status, text } = await ask(query as Record<string, string>)
  expect(status).toBe(400)
  const { issues } = JSON.parse(text).error.details
  expect(issues).toEqual([{ parameter, message: expect.stringContaining(message) }])
})

describe('while other processes hold every slot', () => {
  let since: string
  let others: RequestSlots
  let releases: (() => void)[]

  beforeEach(async () => {
    since = await currentCursor()
    await until(async () => (await slotLocks()) === 0)
    others = new RequestSlots(stage.database.serviceUrl, 10, createLog('silent'))
    releases = await Promise.all(
      Array.from({ length: 10 }, () => others.acquire('/api/v1/mad/movements', folders.first.folderId)),
    )
    await change()
  })

  afterEach(() => others.close())

  test('an invalid cursor is refused at once', async () => {
    const { rows } = await stage.staff.client.query(
      `select grandlivre.ledger_cursor(schema_id, id, ledger_version, 'former') as cursor from grandlivre.folders where id = 111`,
    )
    for (const [refused, ...outcome] of [
      [since.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')), 400, 'ERR-VALIDATION'],
      [rows[0].cursor, 410, 'ERR-CURSOR-EXPIRED'],
    ]) {
      const { status, text } = await ask({ since: refused, wait: '30' })
      expect([status, JSON.parse(text).error.code]).toEqual(outcome)
    }
  })

  test('a waiting request gets the next free slot in turn; one that leaves the line takes none', async () => {
    expect((await ask({ since })).status).toBe(429)
    const gone = new AbortController()
    const leaving = fetch(movementsUrl(stage.service.url, { idExercice: '12', since, wait: '30' }), {
      headers: { ...stage.company, ...ndjson },
      signal: gone.signal,
    })
    const inLine = ask({ since, wait: '1' })
    gone.abort()
    await expect(leaving).rejects.toThrow('aborted')
    releases[0]!()
    const { status, text } = await inLine
    expect([status, readDelta(text).entries]).toEqual([200, [['39', '39']]])
    await until(async () => (await slotLocks()) === releases.length - 1)
  })
})
