/** `grandlivre sync` and `verify` as their users meet them. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { credentials, folders } from '../../../../../test/support/ledgers/tenants.ts'
import { writeAccess } from '../../../src/cli/access.ts'
import { accessOf, grandlivre, jsonLines } from '../../support/cli/command-line.ts'
import { proxiedStage } from '../../support/cli/proxied-stage.ts'

const { first, sameFirm, otherFirm } = folders

const { its, folder: out } = proxiedStage()
const firm = () => accessOf(its.stage.service.url, its.stage.firm)
let copies = 0
function newFile(): string {
  copies += 1
  return join(out, `copy-${copies}.sqlite`)
}

function ask(file: string, sql: string): unknown[] {
  const database = new DatabaseSync(file)
  try {
    return database
      .prepare(sql)
      .all()
      .map((row) => Object.values(row)[0])
  } finally {
    database.close()
  }
}

test('sync prints what it copied, and the exit code of verify shows whether rows differed', async () => {
  const to = newFile()
  const synced = await grandlivre(firm(), ['sync', '--to', to])
  const again = await grandlivre(firm(), ['sync', '--to', to])
  expect(synced).toMatchObject({ code: 0 })
  expect(synced.out).toMatch(
    /copy-\d+\.sqlite: 2 of 2 ledgers copied, [\d,]+ movements; 0 were level before this run; .*\n$/,
  )
  expect(again.out).toContain(': 0 of 2 ledgers copied, 0 movements; 2 were level before this run;')
  const verify = (...words: string[]) => grandlivre(firm(), ['verify', '--to', to, ...words])
  expect(await verify()).toMatchObject({ code: 0, out: expect.stringContaining('2 ledgers with') })
  ask(to, `update journals set journal_name = 'Other' where society_id = 111`)
  expect(await verify('--no-repair')).toMatchObject({
    code: 1,
    error: '111 differs: journals\nDifferent: 111\nWithout --no-repair they are read again.\n',
  })
  expect(await verify()).toMatchObject({
    code: 3,
    error: '111 differs: journals\nDifferent, and read again: 111\nThey are equal now.\n',
  })
  expect(await verify()).toMatchObject({ code: 0 })
  await its.stage.staff.client.query(
    `update grandlivre.journals set name = 'Ventes' where schema_id = 100 and folder_id = 111 and id = (select min(id) from grandlivre.journals where folder_id = 111)`,
  )
  const { out: lines } = await grandlivre(firm(), ['sync', '--to', to, '--json'])
  const events = jsonLines(lines)
  expect(events.map(({ kind }) => kind)).toEqual(['copied', 'done'])
  expect(events[0]).toMatchObject({ society: '111', entries: expect.any(Array) })
  expect(events[1]).toMatchObject({ copy: to, ledgers: 2, copied: 1, before: 1, failed: [] })
})

test('several logins can share a copy, each with the folders of its own firm', async () => {
  const to = newFile()
  const env = { XDG_CONFIG_HOME: out }
  const secret = its.stage.firm['X-Third-Party-Secret']!
  const other = credentials(await its.stage.staff.token('PARTNER', 'firm', otherFirm), secret)
  for (const [name, headers] of Object.entries({
    north: its.stage.firm,
    one: its.stage.company,
    south: other,
  })) {
    const { GRANDLIVRE_URL: baseUrl, GRANDLIVRE_TOKEN: token } = accessOf(its.stage.service.url, headers)
    await writeAccess(env, { baseUrl: baseUrl!, token: token!, secret }, name)
  }
  const call = (command: string, ...profiles: string[]) =>
    grandlivre(env, [
      ...[command, '--to', to],
      ...profiles.flatMap((name) => (name.startsWith('-') ? name : ['--profile', name])),
    ])
  // The profiles north and one belong to the same firm.
  expect(await call('sync', 'north', 'one', 'south')).toMatchObject({
    code: 0,
    out: expect.stringContaining('3 of 4 ledgers copied'),
  })
  expect(ask(to, 'select firm_id from folders order by society_id')).toEqual([110, 110, 120])
  // A run for one firm marks no folder of the other firm as gone.
  expect(await call('sync', 'south')).toMatchObject({ code: 0, error: '' })
  expect(ask(to, 'select gone_at from folders')).toEqual([null, null, null])
  expect(await call('verify', 'north', 'one', 'south')).toMatchObject({ code: 0, error: '' })
  expect(await call('verify', 'one', 'south')).toMatchObject({
    code: 1,
    error: '112: not proven: no access that was given opens it\nNot proven: 112\n',
  })
  // A profile that fails does not stop the others, and its error comes last.
  const token = `glv_firm_${'x'.repeat(43)}`
  await writeAccess(env, { baseUrl: its.stage.service.url, token, secret }, 'ended')
  expect(await call('sync', 'ended', 'south')).toMatchObject({
    code: 4,
    out: expect.stringContaining('0 of 1 ledgers copied'),
    error: expect.stringMatching(/^Profile ended: .*\(ERR-FIRM-TOKEN-NOT-FOUND\)\n.+\nRequest id: .+\n$/),
  })
  // --quiet also prints every error in full. The first error comes last.
  await writeAccess(env, { baseUrl: 'http://127.0.0.1:1', token, secret }, 'away')
  for (const command of ['sync', 'verify']) {
    const { code, error } = await call(command, 'ended', 'away', 'south', '--quiet')
    expect([code, error]).toEqual([
      4,
      expect.stringMatching(
        /^Profile away: .*\(CONNECTION-FAILED\)\n.+\nAddress: http:..127.0.0.1:1, .*\nProfile ended: .*\nRequest id: .+\n$/s,
      ),
    ])
  }
  const { error } = await call('sync', 'ended', 'away', '--json')
  expect(jsonLines(error)).toMatchObject([
    { code: 'CONNECTION-FAILED', message: expect.stringMatching(/^Profile away: /) },
    { code: 'ERR-FIRM-TOKEN-NOT-FOUND', message: expect.stringMatching(/^Profile ended: /) },
  ])
  expect(await call('sync', 'south', 'north', 'south')).toMatchObject({
    code: 2,
    error: expect.stringMatching(/^--profile south is given twice\n/),
  })
})

test('--society chooses folders, and a missing folder is named at the end', async () => {
  const to = newFile()
  const one = await grandlivre(firm(), ['sync', '--to', to, '--society', sameFirm.folderId])
  expect(one.out).toContain('1 of 1 ledgers copied')
  // The next run copies what the first run left out.
  const rest = await grandlivre(firm(), ['sync', '--to', to])
  expect(rest.out).toMatch(/1 of 2 ledgers copied, [\d,]+ movements; 1 were level before this run;/)
  const societies = ['--society', first.folderId, '--society', '7']
  const { code, error } = await grandlivre(firm(), ['sync', '--to', to, ...societies])
  expect([code, error]).toEqual([
    4,
    expect.stringMatching(/\nNot copied: 7\nThe other ledgers are there. grandlivre fol/),
  ])
  expect(ask(to, 'select society_id from folders order by 1')).toEqual([111, 112])
  // The copy has this folder, and the access does not open it.
  const company = accessOf(its.stage.service.url, its.stage.company)
  expect(await grandlivre(company, ['sync', '--to', to, '--society', sameFirm.folderId])).toMatchObject({
    code: 4,
    out: expect.stringContaining('0 of 1 ledgers copied, 0 movements; 0 were level before this run;'),
    error: expect.stringContaining(`Not copied: ${sameFirm.folderId}\ngrandlivre folders lists`),
  })
})

test('a password in --to and a copy of another service are refused, and --again rebuilds a former layout', async () => {
  const addresses = ['postgres://me:secret@localhost/books', 'postgres://localhost/books?password=secret']
  for (const to of [...addresses, 'host=localhost password=secret'])
    for (const command of ['sync', 'verify', 'folders']) {
      const { code, error } = await grandlivre(firm(), [command, '--to', to])
      expect([code, error]).toEqual([2, expect.stringMatching(/^--to holds a password.*\n.*PGPASSWORD/)])
      expect(error).not.toContain('secret')
    }
  const former = newFile()
  ask(former, 'pragma application_id = 0x474c5652')
  const database = new DatabaseSync(former)
  database.exec('create table sync_state (area text); create table mine (note text)')
  database.close()
  expect(await grandlivre(firm(), ['sync', '--again', '--to', former])).toMatchObject({ code: 0 })
  expect(ask(former, `select name from sqlite_schema where name in ('mine', 'sync_state')`)).toEqual(['mine'])
  const moved = await grandlivre(
    { ...firm(), GRANDLIVRE_URL: its.stage.service.url.replace('127.0.0.1', 'localhost') },
    ['sync', '--to', former],
  )
  expect(moved).toMatchObject({ code: 7, error: expect.stringContaining('is a copy of the ledgers at') })
})
