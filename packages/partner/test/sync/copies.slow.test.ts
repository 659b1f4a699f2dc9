/** Copies of two folders of a firm, from the real service: always the rows that the service gives. */
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { folders } from '../../../../test/support/ledgers/tenants.ts'
import { until } from '../../../../test/support/until.ts'
import { ledgerTables } from '../../../contract/src/ledger-tables.ts'
import { storedNames } from '../../src/sync/sqlite/schema.sql.ts'
import { followLedgers, openCopy, syncCopy, verifyCopy } from '../../src/sync/sync.ts'
import { accessOf, type RunningCommand, startGrandlivre } from '../support/cli/command-line.ts'
import { changesPath, tamper } from '../support/sync/copies.ts'
import { copyKinds } from '../support/sync/rows.ts'
import { firstFolder, secondFolder, syncStageForTests } from '../support/sync/sync-stage.ts'

const stage = syncStageForTests()

describe.each(copyKinds)('in %s', (kind) => {
  test('sync copies a firm, then only what changed; an unchanged firm takes one request', async () => {
    const run = await stage.open(stage.newAddress(kind))
    expect(await syncCopy(run)).toMatchObject({ ledgers: 2, copied: 2, failed: [] })
    expect(stage.askedFor()).toEqual(['GET /api/v1/mad/ledgers', `POST ${changesPath}`])
    await run.expectTheLedgers()
    const [folder] = await run.copy.folders()
    expect(folder).toMatchObject({
      society: firstFolder,
      firm_id: '110',
      firm_name: 'Firm 110',
      gone_at: null,
    })
    stage.proxy.asked.length = 0
    expect(await syncCopy(run)).toMatchObject({ ledgers: 2, copied: 0 })
    expect(stage.askedFor()).toEqual(['GET /api/v1/mad/ledgers'])
    await stage.rename('1000005', `changé ${stage.count()}`)
    run.events.length = 0
    expect(await syncCopy(run)).toMatchObject({ copied: 1, rows: 10 })
    expect(run.events.at(-1)).toMatchObject({
      kind: 'copied',
      society: firstFolder,
      since: folder!.cursor,
      entries: [['1000000', '1000000']],
      rows_before: 10,
      rows_after: 10,
    })
    await run.expectTheLedgers()
  })

  test('the table `changes` counts each row once, even if the stream breaks and the ledger changes meanwhile', async () => {
    const run = await stage.copied(kind)
    await stage.change(
      `update movements set description = repeat('rompu ${stage.count()} ', 600) where folder_id = 111 and entry_id between 1000050 and 1000079`,
    )
    stage.proxy.asked.length = 0
    stage.proxy.fault = async (path) => {
      if (!path.startsWith(changesPath)) return
      if (stage.askedFor().length === 2) return { kind: 'cut', afterBytes: 1_300_000 }
      // Changes an entry that was not announced, and an entry that came before the break.
      for (const id of ['1000005', '1000501']) await stage.rename(id, `repris ${stage.count()}`)
      return
    }
    await syncCopy({ ...run, encoding: 'identity' })
    expect(stage.askedFor()).toHaveLength(3)
    const entries = [1000000, 1000000, 1000050, 1000079].map(String)
    const [rows_before, rows_after] = [310, 310]
    expect(run.events.at(-1)).toMatchObject({
      entries: [entries.slice(0, 2), entries.slice(2)],
      rows_before,
      rows_after,
    })
    await run.expectTheLedgers()
  })

  test('a folder that has gone is named, kept in the copy, and updated again once it is back', async () => {
    const run = await stage.copied(kind)
    run.events.length = 0
    await stage.whileGone(async () => {
      await syncCopy(run)
      expect(run.kinds()).toEqual(['gone'])
      expect((await run.copy.folders())[1]).toMatchObject({
        society: secondFolder,
        gone_at: expect.any(String),
      })
      await syncCopy(run)
      expect(run.kinds()).toEqual(['gone'])
    })
    await syncCopy(run)
    expect(run.kinds()[1]).toBe('back')
    expect((await run.copy.folders())[1]!.gone_at).toBeNull()
    await run.expectTheLedgers()
  })

  test('a ledger that arrives corrupted keeps its old copy, and the others are copied', async () => {
    const run = await stage.open(stage.newAddress(kind))
    const ofFirst = new RegExp(`^\\{"ledger":"${firstFolder}"[^]*?\\{"rows":`)
    const body = (whole: Buffer) => Buffer.from(String(whole).replace(ofFirst, (head) => `${head}1`))
    stage.proxy.fault = (asked) =>
      asked.includes('/ledgers/changes') ? { kind: 'rewrite', body } : undefined
    const summary = await syncCopy({ ...run, encoding: 'identity' })
    expect(summary).toMatchObject({ ledgers: 2, copied: 1, failed: [firstFolder] })
    stage.proxy.fault = () => undefined
    const [folder] = await run.copy.folders()
    expect(folder).toMatchObject({
      society: firstFolder,
      cursor: null,
      failure: expect.stringMatching(/^NOT-PROVEN: /),
    })
    await run.expectTheLedgers([secondFolder])
    expect(await syncCopy(run)).toMatchObject({ copied: 1, failed: [] })
    await run.expectTheLedgers()
  })

  test('a command that is killed within a ledger leaves it uncopied, and the next command continues there', async () => {
    const address = stage.newAddress(kind)
    const words = ['sync', '--json', '--to', address]
    const env = { ...accessOf(stage.proxy.url, stage.firm) }
    stage.proxy.fault = (path) =>
      path.startsWith(changesPath) ? { kind: 'stall', afterBytes: 3_000_000 } : undefined
    const { child, ended } = startGrandlivre(env, words)
    await until(() => stage.askedFor().includes(`POST ${changesPath}`) && stage.proxy.open() > 0)
    await expect(openAndLock(address)).rejects.toMatchObject({ code: 'COPY-LOCKED' })
    child.kill('SIGKILL')
    expect((await ended).code).toBeNull()
    stage.proxy.fault = () => undefined
    const run = await stage.open(address)
    await syncCopy(run)
    expect(run.events.filter((event) => event.kind === 'copied')).toHaveLength(2)
    await run.expectTheLedgers()
  })

  test('verify finds rows that another program changed, names them, and reads only those again', async () => {
    const address = stage.newAddress(kind)
    const run = await stage.open(address)
    await syncCopy(run)
    const verify = async (repair = true) => {
      run.events.length = 0
      return verifyCopy(run, { repair })
    }
    expect(await verify()).toMatchObject({ proven: 2, differed: [], unproven: [] })
    const cents = kind === 'SQLite' ? 'debit_cents = debit_cents + 1' : 'debit = debit + 0.01'
    const there = `society_id = ${firstFolder} and entry_id = 1000300`
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
        `update accounts set account_name = account_name || ' ' where society_id = ${firstFolder}`,
        { tables: ['accounts'], entries: [] },
      ],
      [`delete from journals where society_id = ${firstFolder}`, { tables: ['journals'], entries: [] }],
      [
        `update folders set name = 'Other' where society_id = ${firstFolder}`,
        { tables: ['folders'], entries: [] },
      ],
    ]
    for (const [sql, difference] of acts) {
      await tamper(address, sql)
      expect(await verify(), sql).toMatchObject({ proven: 2, differed: [firstFolder], unproven: [] })
      expect(run.events).toContainEqual(
        expect.objectContaining({ kind: 'differs', society: firstFolder, ...difference }),
      )
    }
    await tamper(address, acts[0]![0])
    for (let time = 0; time < 2; time += 1)
      expect(await verify(false)).toMatchObject({ proven: 1, differed: [firstFolder], unproven: [] })
    expect((await verify()).differed).toEqual([firstFolder])
    expect((await verify()).differed).toEqual([])
    await tamper(address, `update accounts set society_id = 999 where society_id = ${secondFolder}`)
    expect(await verify()).toMatchObject({ proven: 2, differed: ['999', secondFolder] })
    await tamper(address, acts[0]![0])
    await tamper(address, `delete from folders where society_id = ${firstFolder}`)
    expect(await verify()).toMatchObject({ proven: 2, differed: [firstFolder] })
    expect((await verify()).differed).toEqual([])
    await run.expectTheLedgers()
  })

  test('two runs that share locks can follow one firm, and neither breaks the writes of the other', async () => {
    const [address, locked, stop] = [stage.newAddress(kind), new Set<string>(), new AbortController()]
    const runs = [
      await stage.open(address, stage.firm, locked),
      await stage.open(address, stage.company, locked),
    ]
    const following = runs.map((run) => followLedgers({ ...run, signal: stop.signal }))
    for (let nth = 0; nth < 10; nth += 1) {
      await stage.rename('1003000', `à deux ${nth}`)
      await Promise.race([delay(150), ...following])
    }
    stop.abort()
    await Promise.all(following)
    await syncCopy(runs[0]!)
    await runs[0]!.expectTheLedgers()
  })

  test('a sync with the token of one folder leaves the other folders of its firm as they are', async () => {
    const address = stage.newAddress(kind)
    const run = await stage.open(address)
    await syncCopy(run)
    await stage.endRuns()
    const one = await stage.open(address, stage.company)
    expect(await syncCopy(one)).toMatchObject({ ledgers: 1, copied: 0 })
    expect(one.kinds()).toEqual([])
    expect((await one.copy.folders()).map(({ gone_at }) => gone_at)).toEqual([null, null])
  })

  test('folders shows the state of the copy of each folder', async () => {
    const address = stage.newAddress(kind)
    const env = accessOf(stage.proxy.url, stage.firm)
    const states = async () => {
      const { code, out } = await startGrandlivre(env, ['folders', '--json', '--to', address]).ended
      expect(code).toBe(0)
      return out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
        .map(({ society, copy }) => [society, copy])
    }
    const run = await stage.open(address)
    await syncCopy({ ...run, societies: [firstFolder] })
    expect(await states()).toEqual([
      [firstFolder, 'current'],
      [secondFolder, 'not copied'],
    ])
    await syncCopy(run)
    await stage.rename('1000009', `montré ${stage.count()}`)
    expect(await states()).toEqual([
      [firstFolder, 'behind'],
      [secondFolder, 'current'],
    ])
    await stage.whileGone(async () => {
      await syncCopy(run)
      expect(await states()).toEqual([
        [firstFolder, 'current'],
        [secondFolder, 'gone'],
      ])
    })
  })

  test('a ledger whose cursor is refused is compared by digests, and only what differs is read', async () => {
    const run = await stage.copied(kind)
    await run.copy.note([firstFolder], { cursor: 'not.a.cursor' })
    await stage.rename('1003000', `comparé ${stage.count()}`)
    expect(await syncCopy(run)).toMatchObject({ copied: 1, rows: 1000, failed: [] })
    expect(run.events.at(-1)).toMatchObject({
      society: firstFolder,
      since: 'not.a.cursor',
      rows_before: 1000,
    })
    await run.expectTheLedgers()
  })

  test('a folder that the token does not open is named, and the others are copied', async () => {
    const run = await stage.open(stage.newAddress(kind))
    const societies = [secondFolder, folders.otherTenant.folderId]
    expect(await syncCopy({ ...run, societies })).toMatchObject({ copied: 1, failed: [societies[1]] })
    expect(run.events).toContainEqual(
      expect.objectContaining({ kind: 'failed', society: societies[1], code: 'ERR-FOLDER-NOT-FOUND' }),
    )
    expect((await run.copy.folders()).map(({ society }) => society)).toEqual([secondFolder])
  })

  test('verify brings a copy to the state of the digests, and proves nothing about a folder that has gone', async () => {
    const run = await stage.copied(kind)
    await stage.rename('1000009', `prouvé ${stage.count()}`)
    expect(await verifyCopy(run)).toMatchObject({ proven: 2, differed: [], unproven: [] })
    await stage.whileGone(async () => {
      expect(await verifyCopy(run)).toMatchObject({ proven: 1, differed: [], unproven: [secondFolder] })
    })
  })

  test('with --follow, each change is copied as it comes, until the command is stopped', async () => {
    const address = stage.newAddress(kind)
    const env = accessOf(stage.proxy.url, stage.firm)
    const following = startGrandlivre(env, ['sync', '--json', '--follow', '--to', address])
    await until(
      () => kindsOf(following).includes('done') && stage.askedFor().at(-1) === 'GET /api/v1/mad/ledgers',
    )
    await stage.rename('1003000', `suivi ${stage.count()}`)
    await until(() => kindsOf(following).at(-1) === 'copied' && kindsOf(following).length === 4)
    const run = await stage.open(address)
    await run.expectTheLedgers()
    await stage.endRuns()
    following.child.kill('SIGINT')
    expect(await following.ended).toMatchObject({ code: 0, error: expect.stringContaining('Stopped.') })
  })
})

test('a ledger whose rows are locked in PostgreSQL is recorded as failed, and comes last in the next run', async () => {
  const address = stage.newAddress('PostgreSQL')
  const run = await stage.open(address)
  await syncCopy({ ...run, societies: [firstFolder] })
  await tamper(
    address,
    `create table notes (society_id bigint, entry_id bigint, movement_id bigint,
       foreign key (society_id, entry_id, movement_id) references movements);
     insert into notes select society_id, entry_id, movement_id from movements where entry_id = 1000000`,
  )
  await stage.rename('1000005', `retenu ${stage.count()}`)
  const foreignKeyViolation = '23503'
  const failsAtFirst = async () => {
    run.events.length = 0
    await expect(syncCopy(run)).rejects.toMatchObject({ code: foreignKeyViolation })
    expect(run.events.at(-1)).toMatchObject({ kind: 'failed', society: firstFolder })
  }
  await failsAtFirst()
  const [folder] = await run.copy.folders()
  expect(folder).toMatchObject({
    society: firstFolder,
    failed_at: expect.any(String),
    failure: expect.stringMatching(/^23503: /),
  })
  await failsAtFirst()
  await run.expectTheLedgers([secondFolder])
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
