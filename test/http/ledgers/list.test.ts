/** The list of ledgers (docs/spec/ledgers.md#the-list) and requests that wait for a change of it, through the whole service. */
import { describe, expect, test, vi } from 'vitest'
import { Watch } from '../../../src/db/notifications.ts'
import { type Download, download } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { credentials, folders } from '../../support/ledgers/tenants.ts'
import { startTestService } from '../../support/service.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'
import { until } from '../../support/until.ts'

const stage = forTests(setExportStage)

type Query = Record<string, string>

function list(headers: Query, query: Query = {}, url = stage.service.url): Promise<Download> {
  return download(`${url}/api/v1/mad/ledgers?${new URLSearchParams({ version: '1.0.0', ...query })}`, headers)
}

const sql = (text: string) => stage.staff.client.query(text)
const societies = ({ json }: Download): string[] => json.map(({ society }: { society: string }) => society)
const cursorOf = ({ json }: Download, id: string): string =>
  json.find(({ society }: { society: string }) => society === id)?.cursor
const errorOf = ({ status, json }: Download) => [status, json.error.code]

let changes = 0
const change = (folder: string) =>
  sql(`update grandlivre.entries set comment = 'change ${++changes}' where folder_id = ${folder} and id in
    (select min(id) from grandlivre.entries where folder_id = ${folder})`)

/** Counts calls of `next`, which a request calls when it begins to wait, after it has read the list. */
const waits = vi.spyOn(Watch.prototype, 'next')

/** Asks with the ETag of the present list, and returns once the service waits with that request. */
async function waiting(headers: Query, query: Query = {}, url = stage.service.url) {
  const { etag } = (await list(headers, query, url)).headers
  const before = waits.mock.calls.length
  const answer = list({ ...headers, 'If-None-Match': etag! }, { wait: '30', ...query }, url)
  await until(() => waits.mock.calls.length > before)
  // The promise is in an object, because `await` would otherwise wait for it, too.
  return { answer, etag }
}

describe('the list of ledgers', () => {
  test('has the folders of the firm, or the one of a company token, with the cursors of their ledgers', async () => {
    const ofFirm = await list(stage.firm)
    expect(ofFirm.json).toEqual([
      {
        society: '111',
        firm: { id: '110', name: 'Firm 110' },
        name: 'Folder 111',
        reference: 'Éts "L\'Œuf" & Fils',
        cursor: expect.stringMatching(/^[\w.-]{1,64}$/),
        employees: true,
      },
      {
        society: '112',
        firm: { id: '110', name: 'Firm 110' },
        name: 'Folder 112',
        reference: null,
        cursor: expect.stringMatching(/^[\w.-]{1,64}$/),
        employees: true,
      },
    ])
    const ofCompany = await list(stage.company)
    expect(ofCompany.json).toEqual([ofFirm.json[0]])
    const journals = await download(`${stage.service.url}/api/v1/mad/journals?version=1.0.0`, stage.company)
    expect(journals.headers['x-ledger-cursor']).toBe(cursorOf(ofCompany, '111'))
  })

  test('has only the folder that the request names; a folder of others is not found', async () => {
    expect(societies(await list({ ...stage.firm, 'society-id': '112' }))).toEqual(['112'])
    expect(societies(await list(stage.firm, { accountingFolderId: '112' }))).toEqual(['112'])
    for (const { folderId } of [folders.otherFirm, folders.otherTenant]) {
      const refused = await list(stage.firm, { accountingFolderId: folderId })
      expect(errorOf(refused)).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
    }
    expect(errorOf(await list(stage.company, { accountingFolderId: '112' }))).toEqual([
      403,
      'ERR-FORBIDDEN-ACCESS',
    ])
    expect(errorOf(await list(stage.firm, { accountingFolderId: 'x' }))).toEqual([400, 'ERR-VALIDATION'])
  })

  test('is sorted by id as a number, including a folder that moved to its new firm', async () => {
    await sql(
      `insert into grandlivre.folders (schema_id, firm_id, id, name) values (100, 110, 1000, 'a'), (100, 110, 99, 'b')`,
    )
    expect(societies(await list(stage.firm))).toEqual(['99', '111', '112', '1000'])
    await sql('update grandlivre.folders set firm_id = 120 where id = 1000')
    expect(societies(await list(stage.firm))).toEqual(['99', '111', '112'])
    await sql('delete from grandlivre.folders where id in (99, 1000)')
  })

  test('has other ETags if it is sent as lines, or compressed', async () => {
    const json = await list(stage.firm)
    const answers = [json]
    for (const headers of [
      { Accept: 'application/x-ndjson' },
      { 'Accept-Encoding': 'zstd' },
      { 'Accept-Encoding': 'gzip' },
    ])
      answers.push(await list({ ...stage.firm, ...headers } as Query))
    const lines = json.json.map((ledger: object) => `${JSON.stringify(ledger)}\n`).join('')
    expect(answers.map(({ text }) => text)).toEqual([json.text, lines, json.text, json.text])
    const etags = answers.map(({ headers }) => headers.etag)
    expect(new Set(etags).size).toBe(4)
    for (const query of [{}, { wait: '30' }] as Query[]) {
      const other = await list({ ...stage.firm, 'If-None-Match': etags[1]! }, query)
      expect([other.status, other.text]).toEqual([200, json.text])
    }
  })

  test('is answered with 304 while none of its ledgers changes', async () => {
    const { headers } = await list(stage.firm)
    const same = { ...stage.firm, 'If-None-Match': headers.etag! }
    await change('121')
    const unchanged = await list(same)
    expect([unchanged.status, unchanged.headers.etag, unchanged.text]).toEqual([304, headers.etag, ''])
    await change('112')
    const changed = await list(same)
    expect(changed.status).toBe(200)
    expect(changed.headers.etag).not.toBe(headers.etag)
    // As in a failover: the same states get other cursors.
    await sql('update grandlivre.service_state set epoch = epoch + 1')
    expect((await list({ ...stage.firm, 'If-None-Match': changed.headers.etag! })).status).toBe(200)
  })
})

describe('a request that waits', () => {
  const folder = (id: number) =>
    `insert into grandlivre.folders (schema_id, firm_id, id, name) values (100, 110, ${id}, 'new')`
  const moveTo = (firm: number) => `update grandlivre.folders set firm_id = ${firm} where id = 113`
  const own = ['111', '112']
  const withOther = [...own, '113']

  test.each([
    ['a commit', `update grandlivre.entries set comment = 'seen' where folder_id = 111`, own],
    ['a new folder', folder(113), withOther],
    ['a folder that leaves', moveTo(120), own],
    ['a folder that comes', moveTo(110), withOther],
    ['a folder that is deleted', 'delete from grandlivre.folders where id = 113', own],
    ['another name of a folder', `update grandlivre.folders set name = name || '.' where id = 112`, own],
    ['another name of the firm', `update grandlivre.firms set name = name || '.' where id = 110`, own],
  ])('is woken by %s', async (_, change, listed) => {
    const { answer, etag } = await waiting(stage.firm)
    await sql(change)
    const woken = await answer
    expect([woken.status, societies(woken)]).toEqual([200, listed])
    expect(woken.headers.etag).not.toBe(etag)
  })

  test('of a company token is woken only by its folder and by the name of its firm', async () => {
    for (const text of [
      `update grandlivre.folders set name = name || '.' where id = 111`,
      `update grandlivre.firms set name = name || '.' where id = 110`,
    ]) {
      const { answer } = await waiting(stage.company)
      let isOver = false
      void answer.then(() => {
        isOver = true
      })
      await change('112')
      await until(async () => societies(await list(stage.company)).length === 1)
      expect(isOver).toBe(false)
      await sql(text)
      expect((await answer).status).toBe(200)
    }
  })

  test('is answered with 304 when the time is over, and at once without If-None-Match', async () => {
    const { etag } = (await list(stage.firm)).headers
    const over = await list({ ...stage.firm, 'If-None-Match': etag! }, { wait: '1' })
    expect([over.status, over.headers.etag]).toEqual([304, etag])
    expect((await list(stage.firm, { wait: '30' })).status).toBe(200)
  })

  test('does not count towards the rate limit of its token', async () => {
    const { answer } = await waiting(stage.firm)
    const count = async () =>
      (await sql('select sum(requests)::int as requests from grandlivre.rate_windows')).rows[0].requests
    const held = await count()
    await change('112')
    expect((await answer).status).toBe(200)
    expect(await count()).toBe(held - 1)
  })

  test('counts towards the rate limit if a service that stops answers it at once', async () => {
    // The window outlasts the test: a new one would count from the start.
    const rateLimit = { requests: 100_000, windowMs: 600_000, concurrent: 10 }
    const other = await startTestService(stage.database, { rateLimit })
    const { answer, etag } = await waiting(stage.firm, {}, other.url)
    const left = other.stop(2_000)
    expect((await answer).status).toBe(304)
    const remaining: number[] = []
    // The first request gets a list, which begins the pause of its token.
    for (const held of ['"other"', etag!, etag!]) {
      const asked = await list({ ...stage.firm, 'If-None-Match': held }, { wait: '30' }, other.url)
      remaining.push(Number(asked.headers['x-rate-limit-remaining']))
    }
    expect(remaining.map((each) => each - remaining[0]!)).toEqual([0, -1, -2])
    await left
  })

  test('of a revoked token gets no list', async () => {
    const secret = await stage.staff.thirdParty(`GONE-${changes}`)
    const issued = await stage.staff.token(`GONE-${changes}`, 'firm', folders.first)
    const { answer } = await waiting(credentials(issued, secret))
    await sql(`update grandlivre.tokens set revoked_at = now() where id = ${issued.id}`)
    await change('111')
    expect(errorOf(await answer)).toEqual([401, 'ERR-FIRM-TOKEN-NOT-FOUND'])
  })

  test('of a folder that leaves the firm gets no list', async () => {
    await sql(folder(114))
    const { answer } = await waiting({ ...stage.firm, 'society-id': '114' })
    await sql('update grandlivre.folders set firm_id = 120 where id = 114')
    expect(errorOf(await answer)).toEqual([404, 'ERR-FOLDER-NOT-FOUND'])
  })

  test('gets 304 when the service stops', async () => {
    const other = await startTestService(stage.database)
    const { answer, etag } = await waiting(stage.firm, {}, other.url)
    await other.stop()
    const unchanged = await answer
    expect([unchanged.status, unchanged.headers.etag]).toEqual([304, etag])
  })
})
