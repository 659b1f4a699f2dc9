/**
 * The group `employees` (docs/spec/interface.md#groups-of-a-token): answers and files for a token with it and for one
 * without it differ only in the personal data of employees.
 */
import { beforeEach, describe, expect, test } from 'vitest'
import { layouts } from '../../src/formats/tra/layouts.ts'
import type { LedgerDigests } from '../support/changes/ledger-digests.ts'
import { readLedgers } from '../support/changes/ledger-stream.ts'
import { mark, setEmployeesStage } from '../support/employees/stage.ts'
import { forTests } from '../support/for-tests.ts'
import { downloadFile, ended, statusUrl, trigger } from '../support/full-export.ts'
import { request } from '../support/service.ts'
import { until } from '../support/until.ts'

type Headers = Record<string, string>

const stage = forTests(setEmployeesStage)

const address = (path: string) =>
  `${stage.service.url}/api/v1/mad/${path}${path.includes('?') ? '&' : '?'}version=1.0.0`
async function get(path: string, headers: Headers) {
  const answer = await fetch(address(path), { headers })
  return {
    status: answer.status,
    etag: answer.headers.get('etag'),
    cursor: answer.headers.get('x-ledger-cursor'),
    text: await answer.text(),
  }
}
async function post(route: 'blocks' | 'changes', body: object, headers: Headers) {
  const type = { 'Content-Type': 'application/json' }
  return (
    await fetch(address(`ledgers/${route}`), {
      method: 'POST',
      headers: { ...headers, ...type },
      body: JSON.stringify(body),
    })
  ).text()
}

/** Removes the data of employees from the text of accounts. */
function withoutEmployees(text: string, accounts: { employee?: object }[]): string {
  let hidden = text
  const employees = accounts.flatMap(({ employee }) => (employee ? [JSON.stringify(employee)] : []))
  expect(employees).toHaveLength(1)
  for (const employee of employees) hidden = hidden.replace(`"employee":${employee}`, '"employee":null')
  expect(text).toContain(mark)
  expect(hidden).not.toContain(mark)
  return hidden
}

test.each(['application/json', 'application/x-ndjson'])(
  'accounts as %s have one ETag with employees and another without',
  async (Accept) => {
    const opened = { ...stage.opened, Accept }
    const hidden = { ...stage.hidden, Accept }
    const [all, less] = [await get('accounts', opened), await get('accounts', hidden)]
    const lines = all.text.trim().split('\n')
    const items = Accept.includes('ndjson') ? lines.map((line) => JSON.parse(line)) : JSON.parse(all.text)
    expect(less.text).toBe(withoutEmployees(all.text, items))
    expect(less.cursor).toBe(all.cursor)
    expect(less.etag).not.toBe(all.etag)
    for (const [headers, own, other] of [
      [opened, all, less],
      [hidden, less, all],
    ] as const) {
      expect((await get('accounts', { ...headers, 'If-None-Match': own.etag! })).status).toBe(304)
      const { status, text } = await get('accounts', { ...headers, 'If-None-Match': other.etag! })
      expect([status, text === own.text]).toEqual([200, true])
      expect((await get('accounts', { ...headers, 'If-Match': own.etag! })).status).toBe(200)
      expect((await get('accounts', { ...headers, 'If-Match': other.etag! })).status).toBe(412)
    }
  },
)

test('every other answer is the same with and without the group employees, with its ETag and cursor', async () => {
  const { exerciceId } = stage.folder
  const selected = ['movements', 'movements/blocks', 'entries', 'balance'].map(
    (what) => `${what}?idExercice=${exerciceId}`,
  )
  const others = 'accountingFolder payments vats banks journals exercices analytics entry?id=603'
  for (const path of [...selected, ...others.split(' ')]) {
    const all = await get(path, stage.opened)
    expect([path, await get(path, stage.hidden)]).toEqual([path, all])
    expect([path, all.status, all.text.includes(mark)]).toEqual([path, 200, false])
  }
})

describe('full exports', () => {
  const query = (format: string) => ({
    format,
    ...(format === 'FEC' ? { idExercice: stage.folder.exerciceId } : {}),
  })
  async function file(format: string, headers: Headers) {
    const { body } = await trigger(stage.service.url, headers, query(format))
    const job = await ended(stage.service.url, headers, body.id)
    expect(job.status).toBe('DONE')
    const bytes = Buffer.from(await (await fetch(job.url!)).arrayBuffer())
    return { id: body.id, bytes, text: bytes.toString('latin1') }
  }

  test('in JSON lack only the details of employees, for a token without that group', async () => {
    const plain = (bytes: Buffer) =>
      bytes
        .toString()
        .replace(
          /"createdAt":\d+,"producer":"Grandlivre","additionalFreeProperties":\{"exportId":"\w+"\}/,
          '',
        )
    const all = await file('JSON', stage.opened)
    const less = plain((await file('JSON', stage.hidden)).bytes)
    expect(less).toBe(withoutEmployees(plain(all.bytes), JSON.parse(all.bytes.toString()).data.accounts))
  })

  test('in TRA leave only the personal columns of employees blank, for a token without that group', async () => {
    const columns = 'ADRESSE 1, ADRESSE 2, CODE POSTAL, VILLE, PAYS, TELEPHONE, MODE REGLEMENT, PRENOM'.split(
      ', ',
    )
    const [all, less] = [await file('TRA', stage.opened), await file('TRA', stage.hidden)]
    const isEmployee = (line: string) => line.startsWith('***CAE421')
    // The first line has the minute of the export, in which the files may differ.
    const [every, fewer] = [all, less].map(({ text }) => text.split('\r\n').slice(1)) as [string[], string[]]
    const blanked = every.map((line) => {
      if (!isEmployee(line)) return line
      let blank = line
      for (const { name, at, length } of layouts.CAE.fields)
        if (columns.includes(name))
          blank = blank.slice(0, at - 1) + ' '.repeat(length) + blank.slice(at - 1 + length)
      return blank.trimEnd()
    })
    expect(every.filter(isEmployee)).toEqual([expect.stringContaining(mark)])
    expect(fewer.map((line) => (isEmployee(line) ? line.trimEnd() : line))).toEqual(blanked)
    expect(less.text).not.toContain(mark)
  })

  test.each(['FEC', 'CSV', 'PARQUET'])(
    'in %s contain no details of employees, and are the same for both tokens',
    async (format) => {
      const [all, less] = [await file(format, stage.opened), await file(format, stage.hidden)]
      expect(less.id).not.toBe(all.id)
      expect(less.bytes.equals(all.bytes)).toBe(true)
      expect(all.text).not.toContain(mark)
    },
  )

  test('with employees cannot be found by a token without that group; those without employees are found by both', async () => {
    const { url } = stage.service
    const ids = new Map<Headers, string>()
    for (const headers of [stage.opened, stage.hidden])
      ids.set(headers, (await trigger(url, headers)).body.id)
    const [all, less] = [ids.get(stage.opened)!, ids.get(stage.hidden)!]
    expect(less).not.toBe(all)
    const status = async (id: string, headers: Headers) => (await request(statusUrl(url, id), headers)).status
    for (const id of [all, less]) await ended(url, stage.opened, id)
    const refused = await request(statusUrl(url, all), stage.hidden)
    expect([refused.status, refused.body.error.code]).toEqual([404, 'ERR-EXPORT-NOT-FOUND'])
    expect(await status(less, stage.hidden)).toBe(200)
    expect(await status(less, stage.opened)).toBe(200)
    // The group of a token decides, and not the token itself.
    const named = await stage.token('api', ['exports', 'employees'])
    expect((await trigger(url, named)).body.id).toBe(all)
    const alone = await stage.token('api', ['exports'])
    expect((await trigger(url, alone)).body.id).toBe(less)
    expect(await status(all, alone)).toBe(404)
    const { json } = await downloadFile((await request(statusUrl(url, less), alone)).body.url)
    expect(JSON.stringify(json)).not.toContain(mark)
  })

  test('cannot be claimed by a process that does not know this kind of export', async () => {
    const { body } = await trigger(stage.service.url, stage.hidden, { compression: 'gzip' })
    const claim = stage.staff.client.query(
      `update grandlivre.exports set attempt = attempt + 1 where id = $1`,
      [body.id],
    )
    await expect(claim).rejects.toThrow('exports_check')
    await ended(stage.service.url, stage.hidden, body.id)
  })
})

describe('ledgers', () => {
  beforeEach(() => stage.staff.client.query('delete from grandlivre.ledger_blocks'))

  const digests = async (headers: Headers): Promise<LedgerDigests> =>
    JSON.parse(await post('blocks', {}, headers))
  const ledger = async (headers: Headers, wanted: object = {}) =>
    readLedgers(await post('changes', wanted, headers)).ledgers[0]!
  const isKept = (cursor?: string) =>
    until(async () => {
      const kept = 'select from grandlivre.ledger_blocks where cursor = coalesce($1, cursor)'
      return (await stage.staff.client.query(kept, [cursor])).rowCount === 1
    })
  const changeMovement = () =>
    stage.staff.client.query(
      `update grandlivre.movements set description = description || '.' where id = 706`,
    )

  test('differ only in the rows with details of employees', async () => {
    const [all, less] = [await ledger(stage.opened), await ledger(stage.hidden)]
    const hidden = all.tables.accounts!.map((row) =>
      row.includes(mark) ? row.replace(/[^\t]*$/, '\\N') : row,
    )
    expect(less.tables).toEqual({ ...all.tables, accounts: hidden })
    expect(hidden.join('')).not.toContain(mark)
    expect(less.cursor).toBe(all.cursor)
    expect(less.end).toEqual({
      ...all.end,
      tables: { ...all.end.tables, accounts: less.end.tables['accounts'] },
    })
    expect(less.end.tables['accounts']).not.toBe(all.end.tables['accounts'])
  })

  /** The answers whose digests are kept. */
  const fillings: [string, (headers: Headers) => Promise<unknown>][] = [
    ['a full ledger', ledger],
    ['digests', digests],
  ]
  test.each(fillings)('%s of one caller stores the right digests for both', async (_, fill) => {
    const tables = new Map<Headers, object>()
    for (const headers of [stage.opened, stage.hidden])
      tables.set(headers, (await ledger(headers)).end.tables)
    for (const filler of [stage.opened, stage.hidden]) {
      await stage.staff.client.query('delete from grandlivre.ledger_blocks')
      await fill(filler)
      await isKept()
      for (const reader of [stage.opened, stage.hidden])
        expect((await digests(reader)).tables).toEqual(tables.get(reader))
    }
    const [all, less] = [await digests(stage.opened), await digests(stage.hidden)]
    expect({ ...less, tables: all.tables }).toEqual(all)
  })

  test('stored digests stay right for both kinds of caller, whichever other rows change or accounts are left out', async () => {
    await digests(stage.opened)
    await isKept()
    for (const reader of [stage.opened, stage.hidden]) {
      await changeMovement()
      const { tables } = await digests(reader)
      expect(tables).toEqual((await ledger(reader)).end.tables)
      const society = stage.folder.folderId
      await changeMovement()
      const again = await ledger(reader, { ledgers: [{ society, tables }] })
      expect(again.tables.accounts).toBeUndefined()
      await isKept(again.cursor)
      for (const other of [stage.opened, stage.hidden])
        expect((await digests(other)).tables).toEqual((await ledger(other)).end.tables)
    }
  })

  test('a digest of accounts from the other kind of caller does not make the stream leave them out', async () => {
    for (const [one, other] of [
      [stage.opened, stage.hidden],
      [stage.hidden, stage.opened],
    ] as const) {
      const { cursor: since, end } = await ledger(one)
      const changed = await ledger(other, {
        ledgers: [{ society: stage.folder.folderId, since, tables: end.tables }],
      })
      expect(Object.keys(changed.tables)).toEqual(['accounts', 'movements'])
      expect([changed.cursor, changed.entries]).toEqual([since, []])
    }
  })

  test('the list says whether it is with employees, and has a separate ETag for each kind', async () => {
    const [all, less] = [await get('ledgers', stage.opened), await get('ledgers', stage.hidden)]
    expect(less.text).toBe(all.text.replace('"employees":true', '"employees":false'))
    expect(less.text).not.toBe(all.text)
    expect((await get('ledgers', { ...stage.hidden, 'If-None-Match': all.etag! })).status).toBe(200)
    expect((await get('ledgers', { ...stage.hidden, 'If-None-Match': less.etag! })).status).toBe(304)
  })
})
