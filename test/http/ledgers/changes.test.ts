/** Many ledgers in one answer, through the whole service, against the database. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { wholeTables } from '../../../packages/contract/src/ledger-tables.ts'
import { type LedgerItem, readLedgers } from '../../support/changes/ledger-stream.ts'
import { forTests } from '../../support/for-tests.ts'
import { addLargeExercice, runningQueries } from '../../support/ledgers/large-exercice.ts'
import { lockWaits } from '../../support/ledgers/lock-waits.ts'
import { credentials, folders } from '../../support/ledgers/tenants.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'
import { until } from '../../support/until.ts'

const stage = forTests(setExportStage)

beforeAll(async () => {
  await addLargeExercice(stage.staff.client, 12_000)
})

type Headers = Record<string, string>

interface ErrorAnswer {
  error: { code: string; details: { issues: { parameter: string; message: string }[] } }
}

async function post(body: unknown, headers: Headers = stage.firm, route = 'changes'): Promise<Response> {
  return fetch(`${stage.service.url}/api/v1/mad/ledgers/${route}?version=1.0.0`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

async function ask(body: unknown, headers?: Headers) {
  const answer = await post(body, headers)
  expect(answer.status).toBe(200)
  return readLedgers(await answer.text())
}

async function one(ledger: object): Promise<LedgerItem> {
  const { ledgers, refused } = await ask({ ledgers: [{ society: folders.first.folderId, ...ledger }] })
  expect(refused).toEqual([])
  return ledgers[0]!
}

const change = (sql: string) => stage.staff.client.query(`set search_path = grandlivre; ${sql}`)
const ofFolder = 'schema_id = 100 and folder_id = 111'

async function movementsOf(folderId: string): Promise<{ ids: string[]; debit: string; credit: string }> {
  const { rows } = await stage.staff.client.query(
    `select array_agg(format('%s %s', entry_id, id) order by entry_id, id) as ids,
       (sum(debit) / 100.0)::numeric(18, 2) as debit, (sum(credit) / 100.0)::numeric(18, 2) as credit
     from grandlivre.movements where folder_id = $1`,
    [folderId],
  )
  return rows[0]
}

const keys = ({ tables }: LedgerItem) =>
  tables.movements!.map((row) => `${row.split('\t')[0]} ${row.split('\t')[18]}`)

test('all folders of a firm are sent whole, in the order of their ids', async () => {
  const { ledgers, refused } = await ask({})
  const { rows } = await stage.staff.client.query(
    'select id from grandlivre.folders where schema_id = 100 and firm_id = 110 order by id',
  )
  expect(ledgers.map(({ society }) => society)).toEqual(rows.map(({ id }) => id))
  expect(refused).toEqual([])
  for (const ledger of ledgers) {
    const { ids, debit, credit } = await movementsOf(ledger.society)
    expect(keys(ledger)).toEqual(ids ?? [])
    expect(ledger.end).toMatchObject({ rows: ids.length, debit, credit })
    expect(Object.keys(ledger.tables)).toEqual([...wholeTables, 'movements'])
    expect([ledger.since, ledger.entries]).toEqual([null, [['0', '9007199254740991']]])
    expect(ledger.tables.folders![0]!.split('\t')[0]).toBe(ledger.society)
  }
  // The rows have more than 1 MiB, so they have several proofs.
  expect(ledgers[0]!.proofs.length).toBeGreaterThan(3)
})

test('ledgers come in the order of the request, with its cursors, and without tables that the caller has', async () => {
  const first = await one({})
  const { cursor, end } = first
  const same = await one({ since: cursor, tables: end.tables })
  expect([same.since, same.cursor, same.entries]).toEqual([cursor, cursor, []])
  expect(same.tables).toEqual({ movements: [] })
  expect(same.end).toEqual({ rows: 0, debit: '0.00', credit: '0.00', tables: end.tables })
  const other = 'f'.repeat(64)
  const { tables } = await one({ since: cursor, tables: { ...end.tables, accounts: other } })
  expect(tables).toEqual({ accounts: first.tables.accounts, movements: [] })
  const { ledgers } = await ask({
    ledgers: [folders.sameFirm, folders.first].map(({ folderId }) => ({
      society: folderId,
      since: undefined,
    })),
  })
  expect(ledgers.map(({ society }) => society)).toEqual([folders.sameFirm.folderId, folders.first.folderId])
})

test('changed entries and entries that the request names are sent as one union', async () => {
  const before = await one({})
  const [id, , other] = [...new Set(keys(before).map((key) => key.split(' ')[0]!))]
  await change(`update entries set comment = 'changed' where ${ofFolder} and id = ${id}`)
  const after = await one({ since: before.cursor, entries: [[other, other]] })
  expect(after.cursor).not.toBe(before.cursor)
  const wanted = keys(before).filter((key) => [id, other].includes(key.split(' ')[0]!))
  expect(keys(after)).toEqual(wanted)
  expect(after.entries).toEqual([
    [id, id],
    [other, other],
  ])
  expect((await one({ since: before.cursor })).entries).toEqual([[id, id]])
})

test('after many changes all movements are sent, and the cursor of the request is repeated', async () => {
  const { cursor } = await one({})
  await change(`update movements set description = description || '!' where ${ofFolder}`)
  const after = await one({ since: cursor })
  expect([after.since, after.entries]).toEqual([cursor, [['0', '9007199254740991']]])
  expect(keys(after)).toEqual((await movementsOf(folders.first.folderId)).ids)
})

describe('a request for many ledgers', () => {
  test('refuses folders and cursors of others, and sends the rest', async () => {
    const { cursor } = await one({})
    const { ledgers, refused } = await ask({
      ledgers: [
        { society: '999' },
        { society: folders.otherTenant.folderId },
        { society: folders.sameFirm.folderId, since: cursor },
        { society: folders.first.folderId, since: cursor },
      ],
    })
    expect(refused.map(({ refused: society, code }) => [society, code])).toEqual([
      ['999', 'ERR-FOLDER-NOT-FOUND'],
      [folders.otherTenant.folderId, 'ERR-FOLDER-NOT-FOUND'],
      [folders.sameFirm.folderId, 'ERR-VALIDATION'],
    ])
    expect(refused[0]!.message).toBe(refused[1]!.message)
    expect(ledgers.map(({ society }) => society)).toEqual([folders.first.folderId])
  })

  const rounds = Number(process.env['ISOLATION'] ?? 15)
  test(
    `shows no ledger or row of another tenant, firm or folder, in ${rounds} random requests of four tokens`,
    async () => {
      const secret = await stage.staff.thirdParty('FOUR')
      const all = Object.entries(folders)
      const callers = await Array.fromAsync(
        [['first', 'sameFirm'], ['first'], ['otherFirm'], ['otherTenant']],
        async (own) => {
          const of = folders[own[0] as keyof typeof folders]
          const token = await stage.staff.token('FOUR', own.length === 1 ? 'api' : 'firm', of)
          const headers = credentials(token, secret)
          const answer = await fetch(`${stage.service.url}/api/v1/mad/ledgers?version=1.0.0`, { headers })
          const listed = (await answer.json()) as { society: string; cursor: string }[]
          const ids = all.filter(([label]) => own.includes(label)).map(([, { folderId }]) => folderId)
          expect(listed.map(({ society }) => society)).toEqual(ids)
          return { own, ids, headers, listed }
        },
      )
      const cursors = callers.flatMap(({ listed }) => listed.map(({ cursor }) => cursor))
      const ledger = fc.record(
        {
          society: fc.constantFrom(...all.map(([, { folderId }]) => folderId)),
          since: fc.constantFrom(...cursors),
          entries: fc.constant([['0', '9007199254740991']]),
        },
        { requiredKeys: ['society'] },
      )
      const body = fc.record({
        ledgers: fc.uniqueArray(ledger, { selector: (each) => each.society, minLength: 1 }),
      })
      const property = fc.asyncProperty(
        fc.constantFrom(...callers),
        body,
        async ({ own, ids, headers }, { ledgers }) => {
          const asked = ledgers.map(({ entries, ...each }) =>
            each.since && entries ? { ...each, entries } : each,
          )
          const text = await (await post({ ledgers: asked }, headers)).text()
          const given = readLedgers(text).ledgers.map(({ society }) => society)
          expect(given.filter((society) => !ids.includes(society))).toEqual([])
          for (const { society, since } of asked)
            if (ids.includes(society) && since === undefined) expect(given).toContain(society)
          const foreign = all.map(([label]) => label).filter((label) => !own.includes(label))
          expect(text).not.toMatch(new RegExp(`Écriture \\d+ (${foreign.join('|')})`))
        },
      )
      await fc.assert(property, { numRuns: rounds })
    },
    60_000 + rounds * 500,
  )

  test('refuses every folder except that of the header, or of the token', async () => {
    const { folderId } = folders.first
    const named = { ...stage.firm, 'society-id': folderId }
    for (const headers of [named, stage.company]) {
      const both = { ledgers: [{ society: folders.sameFirm.folderId }, { society: folderId }] }
      const { ledgers, refused } = await ask(both, headers)
      expect(refused).toMatchObject([{ refused: folders.sameFirm.folderId, code: 'ERR-FOLDER-NOT-FOUND' }])
      expect(ledgers.map(({ society }) => society)).toEqual([folderId])
      expect((await ask({}, headers)).ledgers.map(({ society }) => society)).toEqual([folderId])
    }
  })

  const sha = 'a'.repeat(64)
  test.each([
    ['[]', ['body']],
    ['{"ledger":[]}', ['ledger']],
    [{ ledgers: [] }, ['ledgers']],
    [{ ledgers: [{ society: '1' }, { society: '01' }] }, ['ledgers.1.society']],
    [{ ledgers: [{ society: 'x' }] }, ['ledgers.0.society']],
    [{ ledgers: [{ society: '1', sinse: 'x' }] }, ['ledgers.0.sinse']],
    [{ ledgers: [{ society: '1', since: 'a b' }] }, ['ledgers.0.since']],
    [{ ledgers: [{ society: '1', entries: [['1', '2']] }] }, ['ledgers.0.entries']],
    [{ ledgers: [{ society: '1', since: 'x', entries: [['2', '1']] }] }, ['ledgers.0.entries.0']],
    ...[['a', 'b'], ['1'], [1, 2], ['1', '2', '3'], '1-2', null].map((range): [object, string[]] => [
      { ledgers: [{ society: '1', since: 'x', entries: [range] }] },
      ['ledgers.0.entries.0'],
    ]),
    [
      { ledgers: Array(500).fill({ society: 1 }) },
      Array.from({ length: 100 }, (_, at) => `ledgers.${at}.society`),
    ],
    [
      { ledgers: [{ society: '1', since: 'x', entries: Array(1001).fill(['1', '2']) }] },
      ['ledgers.0.entries'],
    ],
    [{ ledgers: [{ society: '1', tables: { movements: sha } }] }, ['ledgers.0.tables.movements']],
    [{ ledgers: [{ society: '1', tables: { accounts: 'A' } }] }, ['ledgers.0.tables.accounts']],
    [
      { ledgers: Array.from({ length: 10_001 }, (_, society) => ({ society: String(society) })) },
      ['ledgers'],
    ],
  ])('refuses a body with a mistake, and names it: %j', async (body, named) => {
    // The route of blocks refuses `since`, `tables` and `entries` in any case.
    const routes = /since|tables|entries/.test(JSON.stringify(body)) ? ['changes'] : ['changes', 'blocks']
    for (const route of routes) {
      const answer = await post(body, stage.firm, route)
      const { error } = (await answer.json()) as ErrorAnswer
      expect([answer.status, error.code]).toEqual([400, 'ERR-VALIDATION'])
      expect(error.details.issues.map(({ parameter }) => parameter)).toEqual(named)
      for (const { message } of error.details.issues) expect(message).toMatch(/^(must|is) /)
    }
  })

  test.each(['changes', 'blocks'])(
    'refuses other media types, and bodies that are too large, on the route of %s',
    async (route) => {
      expect((await post({}, { ...stage.firm, Accept: 'application/json' }, route)).status).toBe(406)
      expect((await post('{}'.padStart(8 * 1024 * 1024), stage.company, route)).status).toBe(200)
      expect((await post('{}'.padStart(8 * 1024 * 1024 + 1), stage.company, route)).status).toBe(413)
    },
  )

  test('is refused before its body is parsed if it is the third simultaneous one of a token on both routes', async () => {
    // Both wait for a table: without that, buffers of the system may take their whole answers, which ends them.
    await stage.staff.client.query('begin; lock table grandlivre.movements')
    const answers = [post({}), post({})]
    await until(async () => (await lockWaits(stage.staff.client, 'movements')) === 2)
    for (const route of ['changes', 'blocks']) {
      const third = await post('no JSON'.padStart(8 * 1024 * 1024), stage.firm, route)
      const { error } = (await third.json()) as ErrorAnswer
      expect([third.status, error.code]).toEqual([429, 'ERR-TOO-MANY-CONCURRENT-REQUEST'])
      expect(third.headers.get('retry-after')).toBe('1')
    }
    const other = post({}, stage.company)
    await stage.staff.client.query('commit')
    expect((await other).status).toBe(200)
    for (const answer of await Promise.all(answers)) readLedgers(await answer.text())
    await until(async () => (await post({})).status === 200)
  })
})

test.each(['gzip', 'zstd'])('ledgers can be encoded in %s', async (encoding) => {
  const answer = await post({}, { ...stage.firm, 'Accept-Encoding': encoding })
  expect(answer.headers.get('content-encoding')).toBe(encoding)
  expect([answer.headers.get('trailer'), answer.headers.get('etag')]).toEqual([null, null])
  expect(answer.headers.get('content-type')).toBe('application/vnd.grandlivre.ledgers')
  expect(readLedgers(await answer.text()).ledgers.length).toBeGreaterThan(1)
})

test('the audit has one row for each ledger', async () => {
  const requestId = 'one-row-a-ledger'
  const body = { ledgers: [{ society: folders.first.folderId }, { society: '999' }] }
  const { ledgers } = await ask(body, { ...stage.firm, 'x-request-id': requestId })
  const { cursor, tables, end } = ledgers[0]!
  const sha256 = createHash('sha256')
    .update(`${tables.movements!.join('\n')}\n`)
    .digest('hex')
  const read = async () =>
    (
      await stage.staff.client.query(
        `select folder_id, rows, sha256, cursor, outcome, code from grandlivre.audit_rows
         where request_id = $1 and details like '%"since"%' order by number`,
        [requestId],
      )
    ).rows
  await until(async () => (await read()).length === 2)
  expect(await read()).toEqual([
    {
      folder_id: folders.first.folderId,
      rows: String(end.rows),
      sha256,
      cursor,
      outcome: 'sent',
      code: null,
    },
    {
      folder_id: '999',
      rows: null,
      sha256: null,
      cursor: null,
      outcome: 'refused',
      code: 'ERR-FOLDER-NOT-FOUND',
    },
  ])
})

describe('while ledgers are sent', () => {
  const both = JSON.stringify({
    ledgers: [folders.first, folders.sameFirm].map(({ folderId }) => ({ society: folderId })),
  })

  /** Begins an answer whose first ledger is larger than all buffers between the thread and a client that does not read. */
  async function begin(headers: Headers) {
    const url = `${stage.service.url}/api/v1/mad/ledgers/changes?version=1.0.0`
    const outgoing = request(url, { method: 'POST', headers })
    outgoing.end(both)
    const [message] = await once(outgoing, 'response')
    return message
  }

  async function textOf(message: AsyncIterable<Buffer>) {
    const chunks: Buffer[] = []
    let error: unknown
    try {
      for await (const chunk of message) chunks.push(chunk)
    } catch (thrown) {
      error = thrown
    }
    return { text: Buffer.concat(chunks).toString(), error }
  }

  test.each([
    ['is revoked', 'revoked_at = now()'],
    ['expires', 'expires_at = now()'],
    ['has lost a group', `groups = '{movements}'`],
  ])('a token that %s ends the stream before the next ledger', async (what, ended) => {
    const code = what.toUpperCase().replaceAll(' ', '-')
    const secret = await stage.staff.thirdParty(code)
    const token = await stage.staff.token(code, 'firm', folders.first)
    const message = await begin(credentials(token, secret))
    await change(`update tokens set ${ended} where id = ${token.id}`)
    const { text, error } = await textOf(message)
    expect(error).toMatchObject({ code: 'ECONNRESET' })
    expect(text).not.toContain(`{"ledger":"${folders.sameFirm.folderId}"`)
    expect(text).not.toContain('{"whole"')
  })

  test('a folder that leaves the firm meanwhile is refused', async () => {
    const message = await begin(stage.firm)
    await change(`update folders set firm_id = 120 where id = ${folders.sameFirm.folderId}`)
    const { ledgers, refused } = readLedgers((await textOf(message)).text)
    await change(`update folders set firm_id = 110 where id = ${folders.sameFirm.folderId}`)
    expect(ledgers.map(({ society }) => society)).toEqual([folders.first.folderId])
    expect(refused).toMatchObject([{ refused: folders.sameFirm.folderId, code: 'ERR-FOLDER-NOT-FOUND' }])
  })

  test('a client that leaves ends its queries', async () => {
    const message = await begin(stage.firm)
    await until(async () => (await runningQueries(stage.staff.client)).length > 0)
    message.destroy()
    await until(async () => (await runningQueries(stage.staff.client)).length === 0)
  })

  test('a change between two ledgers appears only in the second', async () => {
    const { cursor } = (await ask(both, stage.firm)).ledgers[1]!
    const message = await begin(stage.firm)
    await change(`update entries set comment = 'later' where schema_id = 100`)
    const { ledgers } = readLedgers((await textOf(message)).text)
    expect(ledgers[1]!.cursor).not.toBe(cursor)
    expect(ledgers.map(({ tables }) => tables.movements!.some((row) => row.includes('\tlater\t')))).toEqual([
      false,
      true,
    ])
  })
})
