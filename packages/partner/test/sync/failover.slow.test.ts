/**
 * Copies of a firm across epochs: a failover that lost commits which the copies have, planned failovers that lost
 * nothing, and several failovers in a row. Only what differs is read again, by `sync`, by `sync --follow` and by `verify`.
 */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createFolder } from '../../../../src/ledger/tenants.sql.ts'
import { fillRandomLedger } from '../../../../test/support/changes/random-ledger.ts'
import { forTests } from '../../../../test/support/for-tests.ts'
import { addLargeExercice } from '../../../../test/support/ledgers/large-exercice.ts'
import { folders } from '../../../../test/support/ledgers/tenants.ts'
import { setLossyFailover } from '../../../../test/support/replication/lossy-failover.ts'
import { request } from '../../../../test/support/service.ts'
import { until } from '../../../../test/support/until.ts'
import { openCopy, type Run, type SyncEvent, syncCopy, verifyCopy } from '../../src/sync/sync.ts'
import { accessOf, type RunningCommand, startGrandlivre } from '../support/cli/command-line.ts'
import { startFaultyProxy } from '../support/client/faulty-proxy.ts'
import { libraryOf } from '../support/client/library.ts'
import { changesPath, expectRows, setCopyPlaces } from '../support/sync/copies.ts'
import { type CopyKind, copyKinds, linesIn } from '../support/sync/rows.ts'

const { schemaId, firmId, folderId: large } = folders.first
const small = ['1001', '1002', '1003', '1004', '1005']
/** Folder 112 is empty. */
const societies = [large, folders.sameFirm.folderId, ...small]
const digestsPath = '/api/v1/mad/ledgers/blocks'

const stage = forTests(setLossyFailover)
const proxy = forTests(() => startFaultyProxy(stage.service.url))
const places = forTests(setCopyPlaces)
let following: RunningCommand
let followed: string
const runs = {} as Record<CopyKind, Run & { events: SyncEvent[] }>
/** Bytes of a firm that is read in full. */
let firmBytes: number

beforeAll(async () => {
  const client = new pg.Client({ connectionString: stage.primary.ownerUrl })
  await client.connect()
  await addLargeExercice(client, 100_000)
  const { thirdPartyId } = stage
  for (const id of small) {
    await createFolder(client, { schemaId, firmId, id, name: `Folder ${id}` })
    await fillRandomLedger(client, { schemaId, folderId: id, thirdPartyId })
  }
  await client.end()
  for (const kind of copyKinds) {
    proxy.bytes = 0
    const events: SyncEvent[] = []
    const copy = await openCopy(places.newAddress(kind))
    runs[kind] = {
      copy,
      ledger: libraryOf(stage.firm, proxy.url),
      onEvent: (event) => events.push(event),
      events,
    }
    expect(await syncCopy(runs[kind])).toMatchObject({ copied: societies.length, failed: [] })
    firmBytes = proxy.bytes
  }
  const env = accessOf(stage.service.url, stage.firm)
  followed = places.newAddress('SQLite')
  following = startGrandlivre(env, ['sync', '--json', '--follow', '--to', followed])
  await until(() => following.soFar.out.includes('"done"'))
  await stage.standby.catchUp()
  await stage.standby.cutStream()
  for (let commit = 0; commit < 6; commit += 1)
    await change(
      `update entries set comment = 'lost ${commit}' where folder_id = ${large} and id = ${1_000_100 + commit}`,
    )
  await change(`delete from movements where folder_id = 1002 and entry_id < 40`)
  await change(`update accounts set name = 'Lost' where folder_id = 1003`)
  for (const kind of copyKinds) expect(await sync(kind)).toMatchObject({ copied: 3 })
  await levelFollower('lost 5')
  await stage.promote()
  await until(async () => (await request(`${stage.service.url}/readyz`)).status === 200)
  await change('select pass_gate()')
}, 120_000)
afterAll(async () => {
  following?.child.kill('SIGINT')
  await following?.ended
  for (const { copy, ledger } of Object.values(runs)) {
    ledger.close()
    await copy.close()
  }
})

const change = (sql: string) => stage.sql(`set search_path = grandlivre; ${sql}; reset search_path`)
const beginEpoch = () => change('select begin_epoch(true)')
const asked = () => proxy.asked.map(({ path }) => path.replace(/\?.*/, ''))

async function sync(kind: CopyKind) {
  runs[kind].events.length = 0
  proxy.asked.length = 0
  proxy.bytes = 0
  return syncCopy(runs[kind])
}

const expectTheLedgers = ({ copy }: Pick<Run, 'copy'>, which = societies) =>
  expectRows(copy, { url: stage.service.url, caller: stage.firm }, which)

/** Waits until the following process has committed the present cursors, and the comment if one is given. */
async function levelFollower(comment?: string): Promise<void> {
  const ledger = libraryOf(stage.firm, stage.service.url)
  const copy = await openCopy(followed)
  await until(async () => {
    const had = (await copy.folders()).map(({ cursor }) => cursor)
    const has = (await ledger.ledgers({})).ledgers.map(({ cursor }) => cursor)
    return (
      JSON.stringify(had) === JSON.stringify(has) &&
      (comment === undefined || (await linesIn(copy, large, 'movements')).includes(comment))
    )
  })
  if (comment === undefined) await expectTheLedgers({ copy })
  await copy.close()
  ledger.close()
}

test.each(copyKinds)('of ledgers that lost commits, only rows that differ are read: %s', async (kind) => {
  const summary = await sync(kind)
  expect(summary).toMatchObject({ ledgers: societies.length, copied: 3, failed: [] })
  expect(asked()).toEqual(['/api/v1/mad/ledgers', changesPath, digestsPath, changesPath])
  await expectTheLedgers(runs[kind])
})

test('if one entry has changed in a new epoch, only its block is read, less than 2 % of the firm', async () => {
  await beginEpoch()
  await change(`update entries set comment = 'new' where folder_id = ${large} and id = 1000100`)
  for (const kind of copyKinds) {
    const former = (await runs[kind].copy.folders())[0]!.cursor
    const summary = await sync(kind)
    expect(asked()).toEqual(['/api/v1/mad/ledgers', changesPath, digestsPath, changesPath])
    expect(summary).toMatchObject({ copied: 1, failed: [] })
    expect(proxy.bytes).toBeLessThan(firmBytes / 50)
    const came = runs[kind].events.filter((event) => event.kind === 'copied')
    expect(came).toMatchObject([
      { society: large, since: former, rows_before: summary.rows, rows_after: summary.rows },
    ])
    expect(summary.rows).toBeLessThanOrEqual(2_000)
    await expectTheLedgers(runs[kind])
    expect(await verifyCopy(runs[kind])).toMatchObject({
      proven: societies.length,
      differed: [],
      unproven: [],
    })
  }
})

test('a following process recovers by itself after a failover', async () => {
  await levelFollower()
  await beginEpoch()
  await change(`delete from entries where folder_id = 1004 and id < 40`)
  await levelFollower()
  // Each ledger was read in full once, at the beginning.
  expect(following.soFar.out.match(/"since":null/g)).toHaveLength(societies.length)
})

test.each(copyKinds)('after a planned failover, only the list and the digests are read: %s', async (kind) => {
  await sync(kind)
  await beginEpoch()
  expect(await sync(kind)).toMatchObject({ copied: 0, failed: [] })
  expect(asked()).toEqual(['/api/v1/mad/ledgers', changesPath, digestsPath])
  expect(proxy.bytes).toBeLessThan(firmBytes / 50)
  expect(runs[kind].events.filter(({ kind }) => kind === 'rows')).toEqual([])
  // The new cursors are kept.
  expect(await sync(kind)).toMatchObject({ copied: 0 })
  expect(asked()).toEqual(['/api/v1/mad/ledgers'])
  await expectTheLedgers(runs[kind], small)
})

test.each(copyKinds)('sync and verify repair three epochs of changes: %s', async (kind) => {
  await sync(kind)
  for (const [i, folder] of [small[0], large, small[4]].entries()) {
    await beginEpoch()
    await change(`update movements set description = '${kind} ${i}' where folder_id = ${folder}
      and id = (select max(id) from movements where folder_id = ${folder})`)
  }
  expect(await sync(kind)).toMatchObject({ copied: 3, failed: [] })
  await expectTheLedgers(runs[kind], small)
  for (const [i, folder] of [small[1], large, small[3]].entries()) {
    await beginEpoch()
    await change(`update movements set description = '${kind} ${i}' where folder_id = ${folder}
      and id = (select min(id) from movements where folder_id = ${folder})`)
    expect(await verifyCopy(runs[kind])).toMatchObject({
      proven: societies.length,
      differed: [],
      unproven: [],
    })
  }
  await expectTheLedgers(runs[kind])
})

test.each(copyKinds)('a copy loses the first entry that its ledger lost: %s', async (kind) => {
  const empty = folders.sameFirm.folderId
  await change(`insert into exercices (schema_id, folder_id, id, start_date, end_date) values (100, ${empty}, 1, '2020-01-01', '2020-12-31');
    insert into journals (schema_id, folder_id, id, code, name, type) values (100, ${empty}, 1, 'AN', 'New', 'AN');
    insert into accounts (schema_id, folder_id, id, number, name) values (100, ${empty}, 1, '401', 'Lost');
    insert into entries (schema_id, folder_id, id, exercice_id, journal_id, date, accounted_at, created_at, source, currency)
      values (100, ${empty}, 1, 1, 1, '2020-03-01', '2020-03-01', '2020-03-01', 'FEC', 'EUR');
    insert into movements (schema_id, folder_id, exercice_id, entry_id, id, account_id, description, invoice_number, debit, credit)
      values (100, ${empty}, 1, 1, 1, 1, 'Lost', '', 1, 0)`)
  await sync(kind)
  await beginEpoch()
  await change(`delete from movements where folder_id = ${empty}; delete from entries where folder_id = ${empty};
    delete from accounts where folder_id = ${empty}; delete from journals where folder_id = ${empty};
    delete from exercices where folder_id = ${empty}`)
  expect(await sync(kind)).toMatchObject({ copied: 1, failed: [] })
  expect(runs[kind].events.at(-1)).toMatchObject({ society: empty, rows_before: 1, rows_after: 0 })
  await expectTheLedgers(runs[kind], [empty])
})

test.each(copyKinds)('a ledger whose new cursors are all refused is read in full: %s', async (kind) => {
  const one = { ...runs[kind], societies: [small[0]!] }
  await syncCopy(one)
  await beginEpoch()
  await change(`delete from movements where folder_id = ${small[0]} and entry_id = (select max(entry_id) from movements
    where folder_id = ${small[0]})`)
  proxy.fault = async (path) => {
    if (path.startsWith(changesPath)) await beginEpoch()
    return undefined
  }
  expect(await syncCopy(one)).toMatchObject({ copied: 1, failed: [] })
  proxy.fault = () => undefined
  expect(one.events.at(-1)).toMatchObject({ kind: 'copied', society: small[0], since: null })
  await expectTheLedgers(one, [small[0]!])
})
