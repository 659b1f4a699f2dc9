/** Limits that staff give one partner in place of the settings, in every process at once. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RequestSlots } from '../../src/auth/request-slots.ts'
import { createLog } from '../../src/log.ts'
import { cli } from '../support/cli.ts'
import { download, movementsUrl } from '../support/download.ts'
import { forTests } from '../support/for-tests.ts'
import { credentials, folders } from '../support/ledgers/tenants.ts'
import { type ServiceProcess, startProcess } from '../support/process.ts'
import { request } from '../support/service.ts'
import { keyInfo } from '../support/stages/caller-stage.ts'
import { setExportStage } from '../support/stages/export-stage.ts'

const stage = forTests(setExportStage)
let other: ServiceProcess
let dataDir: string

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-limits-'))
  other = await startProcess({ DATABASE_URL: stage.database.ownerUrl, DATA_DIR: dataDir })
})

afterAll(async () => {
  await other?.kill()
  await rm(dataDir, { recursive: true })
})

const limit = (...words: string[]) => cli(stage.database.ownerUrl, 'partner', 'limits', ...words)

test('the limits of a partner apply to all its tokens, in every process at once, until they are removed', async () => {
  const secret = await stage.staff.thirdParty('NARROW')
  const tokens = [
    credentials(await stage.staff.token('NARROW', 'firm', folders.first), secret),
    credentials(await stage.staff.token('NARROW', 'api', folders.first), secret),
  ]
  const urls = [stage.service.url, other.url]
  const ask = async (url: string, headers: Record<string, string>) => {
    const { status, headers: answered } = await request(url + keyInfo, headers)
    return [status, answered.get('x-rate-limit-total'), answered.get('x-rate-limit-remaining')]
  }
  expect(await ask(urls[0]!, tokens[0]!)).toEqual([200, '100000', '99999'])
  const { out } = await limit('NARROW', '--requests', '3', '--window-ms', '3600000')
  expect(out).toBe(
    'Third party NARROW has these limits from now on: 3 requests in 3600000 ms, RATE_LIMIT_CONCURRENT at once on one route for one folder.\n',
  )
  expect(await ask(urls[1]!, tokens[0]!)).toEqual([200, '3', '1'])
  expect(await ask(urls[0]!, tokens[0]!)).toEqual([200, '3', '0'])
  expect(await ask(urls[1]!, tokens[0]!)).toEqual([429, '3', '0'])
  expect(await ask(urls[1]!, tokens[1]!)).toEqual([200, '3', '2'])
  const refused = await request(urls[0] + keyInfo, tokens[0]!)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(60)
  // A minute later, a window of the setting would be over. That of the partner lasts an hour.
  await stage.staff.client.query(
    `update grandlivre.rate_windows set started_at = started_at - interval '1 minute'`,
  )
  expect((await ask(urls[0]!, tokens[0]!))[0]).toBe(429)
  // The limits of other partners stay.
  expect((await ask(urls[0]!, stage.firm))[1]).toBe('100000')

  await limit('NARROW', '--default')
  for (const url of urls) expect((await ask(url, tokens[1]!))[1]).toBe('100000')
})

test('simultaneous requests are counted separately for each partner', async () => {
  const { folderId } = folders.first
  const slots = new RequestSlots(stage.database.serviceUrl, 10, createLog('silent'))
  const path = '/api/v1/mad/movements'
  const statuses = async () => {
    const asked = [stage.service.url, other.url].map((url) => movementsUrl(url, { idExercice: '12' }))
    return Promise.all(asked.map(async (url) => (await download(url, stage.company)).status))
  }
  try {
    const shared = await Promise.all(Array.from({ length: 10 }, () => slots.acquire(path, folderId)))
    expect(await statuses()).toEqual([429, 429])
    await limit('PARTNER', '--concurrent', '2')
    expect(await statuses()).toEqual([200, 200])
    for (const release of shared) release()
    const own = `${folderId} of partner ${stage.thirdPartyId}`
    // The slots of the answers above are free a moment after their last byte.
    for (const signal of [new AbortController().signal, new AbortController().signal])
      await slots.acquireInTurn(path, own, signal, 2)
    expect(await statuses()).toEqual([429, 429])
    await limit('PARTNER', '--default')
    expect(await statuses()).toEqual([200, 200])
  } finally {
    await slots.close()
  }
})

test('a change leaves the limits that it does not name; the audit records all limits after each change', async () => {
  await stage.staff.thirdParty('KEPT')
  await limit('KEPT', '--requests', '50', '--concurrent', '4')
  await limit('KEPT', '--window-ms', '60000')
  expect((await limit('KEPT')).out).toBe('50 requests in 60000 ms, 4 at once on one route for one folder\n')
  await limit('KEPT', '--default', '--concurrent', '5')
  expect((await limit('KEPT')).out).toBe(
    'RATE_LIMIT_REQUESTS requests in RATE_LIMIT_WINDOW_MS ms, 5 at once on one route for one folder\n',
  )
  const { rows } = await stage.staff.client.query(
    `select details::json as details from grandlivre.audit_rows
     where act = 'partner limits' and details like '%KEPT%' order by number`,
  )
  expect(rows.map(({ details }) => details)).toEqual([
    { partner: 'KEPT', requests: 50, windowMs: null, concurrent: 4 },
    { partner: 'KEPT', requests: 50, windowMs: 60_000, concurrent: 4 },
    { partner: 'KEPT', requests: null, windowMs: null, concurrent: 5 },
  ])
})

test.each([
  [['NOBODY'], 'There is no third party NOBODY'],
  [['NOBODY', '--requests', '5'], 'There is no third party NOBODY'],
  [['PARTNER', '--requests', '0'], '--requests takes a number from 1 to 1000000'],
  [['PARTNER', '--window-ms', '99'], '--window-ms takes a number from 100 to 3600000'],
  [['PARTNER', '--concurrent', 'x'], '--concurrent takes a number from 1 to 1000'],
])('limits that are refused: %j', async (words, message) => {
  const { code, error } = await limit(...words)
  expect(code).not.toBe(0)
  expect(error).toContain(message)
})
