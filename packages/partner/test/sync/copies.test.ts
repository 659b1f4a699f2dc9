/** Copies of two folders of a firm, from the real service, in both databases: always the rows that the service gives. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { addLargeExercice } from '../../../../test/support/ledgers/large-exercice.ts'
import { folders } from '../../../../test/support/ledgers/tenants.ts'
import { createTestDatabase, type TestDatabase } from '../../../../test/support/servers/database.ts'
import { type ExportStage, setExportStage } from '../../../../test/support/stages/export-stage.ts'
import { until } from '../../../../test/support/until.ts'
import { type LedgerTableName, ledgerTables } from '../../../contract/src/ledger-tables.ts'
import type { Grandlivre } from '../../src/client/grandlivre.ts'
import { storedNames } from '../../src/sync/sqlite/schema.sql.ts'
import type { Copy, Run, SyncEvent } from '../../src/sync/sync.ts'
import { followLedgers, openCopy, syncCopy, verifyCopy } from '../../src/sync/sync.ts'
import { accessOf, type RunningCommand, startGrandlivre } from '../support/cli/command-line.ts'
import { type FaultyProxy, startFaultyProxy } from '../support/client/faulty-proxy.ts'
import { libraryOf } from '../support/client/library.ts'
import { changesPath, tablesOf } from '../support/sync/service-rows.ts'
import { tamper } from '../support/sync/tamper.ts'

const [first, second] = [folders.first.folderId, folders.sameFirm.folderId]
const tableNames = Object.keys(ledgerTables) as LedgerTableName[]

let stage: ExportStage
let proxy: FaultyProxy
let target: TestDatabase
let out: string
beforeAll(async () => {
  stage = await setExportStage({ rateLimit: { requests: 1_000_000, windowMs: 10_000, concurrent: 200 } })
  await addLargeExercice(stage.staff.client, 6_000)
  proxy = await startFaultyProxy(stage.service.url)
  target = await createTestDatabase({ template: 'template1' })
  out = await mkdtemp(join(tmpdir(), 'grandlivre-sync-'))
})
afterAll(async () => {
  await proxy?.close()
  await stage?.close()
  await target?.drop()
  await rm(out, { recursive: true })
})
beforeEach(() => {
  proxy.fault = () => undefined
  proxy.asked.length = 0
})

const change = (sql: string) => stage.staff.client.query(`set search_path = grandlivre; ${sql}`)
const rename = (id: string, to: string) =>
  change(
    `update movements set description = '${to}' where schema_id = 100 and folder_id = 111 and id = ${id}`,
  )
const askedFor = () => proxy.asked.map(({ method, path }) => `${method} ${path.replace(/\?.*/, '')}`)

let copies = 0
function newAddress(kind: 'SQLite' | 'PostgreSQL'): string {
  copies += 1
  if (kind === 'SQLite') return join(out, `copy-${copies}.sqlite`)
  const url = new URL(target.ownerUrl)
  url.searchParams.set('schema', `copy_${copies}`)
  return url.href
}

interface Opened extends Run {
  ledger: Grandlivre
  events: SyncEvent[]
  kinds(): string[]
}

async function open(
  address: string,
  headers = stage.firm,
  url = proxy.url,
  locked?: Set<string>,
): Promise<Opened> {
  const events: SyncEvent[] = []
  return {
    copy: await openCopy(address, { locked }),
    ledger: libraryOf(headers, url),
    onEvent: (event) => events.push(event),
    events,
    kinds: () =>
      events.map(({ kind }) => kind).filter((kind) => !['rows', 'listed', 'compared'].includes(kind)),
  }
}

async function end({ copy, ledger }: Opened): Promise<void> {
  await copy.close()
  ledger.close()
}

async function expectTheLedgers(copy: Copy, societies = [first, second]): Promise<void> {
  for (const society of societies) {
    const truth = await tablesOf(stage.service.url, stage.firm, society)
    expect(Object.keys(truth).sort()).toEqual([...tableNames].sort())
    for (const table of tableNames) {
      let text = ''
      for await (const lines of copy.lines(society, table)) text += Buffer.from(lines)
      // The two are too long to be shown.
      expect([society, table, text === truth[table]]).toEqual([society, table, true])
    }
  }
}

describe.each(['SQLite', 'PostgreSQL'] as const)('in %s', (kind) => {
  test('a firm is copied, then what changed; nothing changed is one request', async () => {
    const run = await open(newAddress(kind))
    expect(await syncCopy(run)).toMatchObject({ ledgers: 2, copied: 2, failed: [] })
    expect(askedFor()).toEqual(['GET /api/v1/mad/ledgers', `POST ${changesPath}`])
    await expectTheLedgers(run.copy)
    const [folder] = await run.copy.folders()
    expect(folder).toMatchObject({ society: first, firm_id: '110', firm_name: 'Firm 110', gone_at: null })
    proxy.asked.length = 0
    expect(await syncCopy(run)).toMatchObject({ ledgers: 2, copied: 0 })
    expect(askedFor()).toEqual(['GET /api/v1/mad/ledgers'])
    await rename('1000005', `changé ${copies}`)
    run.events.length = 0
    expect(await syncCopy(run)).toMatchObject({ copied: 1, rows: 10 })
    expect(run.events.at(-1)).toMatchObject({
      kind: 'copied',
      society: first,
      since: folder!.cursor,
      entries: [['1000000', '1000000']],
      rows_before: 10,
      rows_after: 10,
    })
    await expectTheLedgers(run.copy)
    await end(run)
  })

  test('changes counts each row once, where the stream breaks and the ledger changes meanwhile', async () => {
    const run = await open(newAddress(kind))
    await syncCopy(run)
    await change(
      `update movements set description = repeat('rompu ${copies} ', 600) where folder_id = 111 and entry_id between 1000050 and 1000079`,
    )
    proxy.asked.length = 0
    proxy.fault = async (path) => {
      if (!path.startsWith(changesPath)) return
      if (askedFor().length === 2) return { kind: 'cut', afterBytes: 1_300_000 }
      // One that was not announced, and one that came before the break.
      for (const id of ['1000005', '1000501']) await rename(id, `repris ${copies}`)
      return
    }
    await syncCopy({ ...run, encoding: 'identity' })
    expect(askedFor()).toHaveLength(3)
    const entries = [1000000, 1000000, 1000050, 1000079].map(String)
    const [rows_before, rows_after] = [310, 310]
    expect(run.events.at(-1)).toMatchObject({
      entries: [entries.slice(0, 2), entries.slice(2)],
      rows_before,
      rows_after,
    })
    await expectTheLedgers(run.copy)
    await end(run)
  })

  test('a folder that is gone is named and kept, and comes back', async () => {
    const run = await open(newAddress(kind))
    await syncCopy(run)
    run.events.length = 0
    const move = (firm: number) => change(`update folders set firm_id = ${firm} where id = ${second}`)
    try {
      await move(120)
      await syncCopy(run)
      expect(run.kinds()).toEqual(['gone'])
      expect((await run.copy.folders())[1]).toMatchObject({ society: second, gone_at: expect.any(String) })
      await syncCopy(run)
      expect(run.kinds()).toEqual(['gone'])
    } finally {
      await move(110)
    }
    await syncCopy(run)
    expect(run.kinds()[1]).toBe('back')
    expect((await run.copy.folders())[1]!.gone_at).toBeNull()
    await expectTheLedgers(run.copy)
    await end(run)
  })

  test('the token of one folder leaves the others of its firm as they are', async () => {
    const address = newAddress(kind)
    const run = await open(address)
    await syncCopy(run)
    await end(run)
    const one = await open(address, stage.company)
    expect(await syncCopy(one)).toMatchObject({ ledgers: 1, copied: 0 })
    expect(one.kinds()).toEqual([])
    expect((await one.copy.folders()).map(({ gone_at }) => gone_at)).toEqual([null, null])
    await end(one)
  })

  test('folders shows the state of the copy of each folder', async () => {
    const address = newAddress(kind)
    const env = accessOf(proxy.url, stage.firm)
    const states = async () => {
      const { code, out } = await startGrandlivre(env, ['folders', '--json', '--to', address]).ended
      expect(code).toBe(0)
      return out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
        .map(({ society, copy }) => [society, copy])
    }
    const run = await open(address)
    await syncCopy({ ...run, societies: [first] })
    expect(await states()).toEqual([
      [first, 'current'],
      [second, 'not copied'],
    ])
    await syncCopy(run)
    await rename('1000009', `montré ${copies}`)
    expect(await states()).toEqual([
      [first, 'behind'],
      [second, 'current'],
    ])
    await change(`update folders set firm_id = 120 where id = ${second}`)
    try {
      await syncCopy(run)
      expect(await states()).toEqual([
        [first, 'current'],
        [second, 'gone'],
      ])
    } finally {
      await change(`update folders set firm_id = 110 where id = ${second}`)
    }
    await end(run)
  })

  test('a ledger whose cursor is refused is compared, and only what differs is read', async () => {
    const run = await open(newAddress(kind))
    await syncCopy(run)
    await run.copy.note([first], { cursor: 'not.a.cursor' })
    await rename('1003000', `comparé ${copies}`)
    expect(await syncCopy(run)).toMatchObject({ copied: 1, rows: 1000, failed: [] })
    expect(run.events.at(-1)).toMatchObject({ society: first, since: 'not.a.cursor', rows_before: 1000 })
    await expectTheLedgers(run.copy)
    await end(run)
  })

  test('a folder that the access does not open is named, and the others are copied', async () => {
    const run = await open(newAddress(kind))
    const societies = [second, folders.otherTenant.folderId]
    expect(await syncCopy({ ...run, societies })).toMatchObject({ copied: 1, failed: [societies[1]] })
    expect(run.events).toContainEqual(
      expect.objectContaining({ kind: 'failed', society: societies[1], code: 'ERR-FOLDER-NOT-FOUND' }),
    )
    expect((await run.copy.folders()).map(({ society }) => society)).toEqual([second])
    await end(run)
  })

  test('a ledger that comes wrong keeps what it has, and the others are copied', async () => {
    const run = await open(newAddress(kind))
    const ofFirst = new RegExp(`^\\{"ledger":"${first}"[^]*?\\{"rows":`)
    const body = (whole: Buffer) => Buffer.from(String(whole).replace(ofFirst, (head) => `${head}1`))
    proxy.fault = (asked) => (asked.includes('/ledgers/changes') ? { kind: 'rewrite', body } : undefined)
    const summary = await syncCopy({ ...run, encoding: 'identity' })
    expect(summary).toMatchObject({ ledgers: 2, copied: 1, failed: [first] })
    proxy.fault = () => undefined
    const [folder] = await run.copy.folders()
    expect(folder).toMatchObject({
      society: first,
      cursor: null,
      failure: expect.stringMatching(/^NOT-PROVEN: /),
    })
    await expectTheLedgers(run.copy, [second])
    expect(await syncCopy(run)).toMatchObject({ copied: 1, failed: [] })
    await expectTheLedgers(run.copy)
    await end(run)
  })

  test('a command that is killed in a ledger leaves it out, and the next one goes on', async () => {
    const address = newAddress(kind)
    const words = ['sync', '--json', '--to', address]
    const env = { ...accessOf(proxy.url, stage.firm) }
    proxy.fault = (path) =>
      path.startsWith(changesPath) ? { kind: 'stall', afterBytes: 3_000_000 } : undefined
    const { child, ended } = startGrandlivre(env, words)
    await until(() => askedFor().includes(`POST ${changesPath}`) && proxy.open() > 0)
    await expect(openAndLock(address)).rejects.toMatchObject({ code: 'COPY-LOCKED' })
    child.kill('SIGKILL')
    expect((await ended).code).toBeNull()
    proxy.fault = () => undefined
    const run = await open(address)
    await syncCopy(run)
    expect(run.events.filter((event) => event.kind === 'copied')).toHaveLength(2)
    await expectTheLedgers(run.copy)
    await end(run)
  })

  test('verify finds what others did to rows, names it, and reads only that again', async () => {
    const address = newAddress(kind)
    const run = await open(address)
    await syncCopy(run)
    const verify = async (repair = true) => {
      run.events.length = 0
      return verifyCopy(run, { repair })
    }
    expect(await verify()).toMatchObject({ proven: 2, differed: [], unproven: [] })
    const cents = kind === 'SQLite' ? 'debit_cents = debit_cents + 1' : 'debit = debit + 0.01'
    const there = `society_id = ${first} and entry_id = 1000300`
    const named =
      kind === 'SQLite' ? storedNames('movements') : ledgerTables.movements.columns.map(({ name }) => name)
    const columns = named.filter((name) => name !== 'entry_id' && name !== 'movement_id').join(', ')
    const copied = (entry: string) => `insert into movements (society_id, entry_id, movement_id, ${columns})
      select society_id, ${entry}, movement_id + 9000000, ${columns} from movements where ${there} limit 1`
    const acts: [sql: string, difference: object][] = [
      [`update movements set ${cents} where ${there}`, { tables: [] }],
      [`delete from movements where ${there} and movement_id = 1003001`, { tables: [] }],
      [copied('entry_id'), { tables: [] }],
      [copied('-5'), { tables: [], entries: [['-9223372036854775808', expect.any(String)]] }],
      [
        `update accounts set account_name = account_name || ' ' where society_id = ${first}`,
        { tables: ['accounts'], entries: [] },
      ],
      [`delete from journals where society_id = ${first}`, { tables: ['journals'], entries: [] }],
      [`update folders set name = 'Other' where society_id = ${first}`, { tables: ['folders'], entries: [] }],
    ]
    for (const [sql, difference] of acts) {
      await tamper(address, sql)
      expect(await verify(), sql).toMatchObject({ proven: 2, differed: [first], unproven: [] })
      expect(run.events).toContainEqual(
        expect.objectContaining({ kind: 'differs', society: first, ...difference }),
      )
    }
    await tamper(address, acts[0]![0])
    for (let time = 0; time < 2; time += 1)
      expect(await verify(false)).toMatchObject({ proven: 1, differed: [first], unproven: [] })
    expect((await verify()).differed).toEqual([first])
    expect((await verify()).differed).toEqual([])
    await tamper(address, `update accounts set society_id = 999 where society_id = ${second}`)
    expect(await verify()).toMatchObject({ proven: 2, differed: ['999', second] })
    await tamper(address, acts[0]![0])
    await tamper(address, `delete from folders where society_id = ${first}`)
    expect(await verify()).toMatchObject({ proven: 2, differed: [first] })
    expect((await verify()).differed).toEqual([])
    await expectTheLedgers(run.copy)
    await end(run)
  })

  test('verify brings a copy to the state of the digests, and proves nothing of a folder that is gone', async () => {
    const run = await open(newAddress(kind))
    await syncCopy(run)
    await rename('1000009', `prouvé ${copies}`)
    expect(await verifyCopy(run)).toMatchObject({ proven: 2, differed: [], unproven: [] })
    await change(`update folders set firm_id = 120 where id = ${second}`)
    try {
      expect(await verifyCopy(run)).toMatchObject({ proven: 1, differed: [], unproven: [second] })
    } finally {
      await change(`update folders set firm_id = 110 where id = ${second}`)
    }
    await end(run)
  })

  test('following copies a change as it comes, until it is stopped', async () => {
    const address = newAddress(kind)
    const env = accessOf(proxy.url, stage.firm)
    const following = startGrandlivre(env, ['sync', '--json', '--follow', '--to', address])
    await until(() => kindsOf(following).includes('done') && askedFor().at(-1) === 'GET /api/v1/mad/ledgers')
    await rename('1003000', `suivi ${copies}`)
    await until(() => kindsOf(following).at(-1) === 'copied' && kindsOf(following).length === 4)
    const run = await open(address)
    await expectTheLedgers(run.copy)
    await end(run)
    following.child.kill('SIGINT')
    expect(await following.ended).toMatchObject({ code: 0, error: expect.stringContaining('Stopped.') })
  })

  test('two that share their locks follow one firm, and neither breaks what the other writes', async () => {
    const [address, locked, stop] = [newAddress(kind), new Set<string>(), new AbortController()]
    const runs = [
      await open(address, stage.firm, proxy.url, locked),
      await open(address, stage.company, proxy.url, locked),
    ]
    const following = runs.map((run) => followLedgers({ ...run, signal: stop.signal }))
    for (let nth = 0; nth < 10; nth += 1) {
      await rename('1003000', `à deux ${nth}`)
      await Promise.race([delay(150), ...following])
    }
    stop.abort()
    await Promise.all(following)
    await syncCopy(runs[0]!)
    await expectTheLedgers(runs[0]!.copy)
    for (const run of runs) await end(run)
  })
})

const kindsOf = ({ soFar }: RunningCommand): string[] =>
  soFar.out
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line).kind)

async function openAndLock(address: string): Promise<void> {
  const copy = await openCopy(address)
  await copy.lock(['110']).finally(() => copy.close())
}
