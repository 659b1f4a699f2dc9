/** The log of changes as it ages: exact, then compacted by day, then forgotten. */
import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Random } from '../../../packages/sample/src/made-up/random.ts'
import { createPool, withStartupOptions } from '../../../src/db/pool.ts'
import { sweepChanges } from '../../../src/ledger/changes/retention.sql.ts'
import { forTests } from '../../support/for-tests.ts'
import { fillTenant, folderId, insertFolder } from '../../support/ledgers/small-ledger.ts'
import { connect, createTestDatabase } from '../../support/servers/database.ts'

const schemaId = '1000'
const folders = [folderId, '2', '3']
const dayMs = 24 * 3_600_000
const retentionDays = 30
/** A day long ago: the functions spare recent changes, by the clock of the database. */
const today = Math.floor(Date.UTC(2006, 5, 1) / dayMs)

const database = forTests(createTestDatabase)
const owner = forTests(() => connect(database.ownerUrl))
let pools: pg.Pool[]

beforeAll(async () => {
  await fillTenant(owner, schemaId)
  for (const folder of folders.slice(1)) await insertFolder(owner, schemaId, folder)
  // Days of the log are days of UTC in every time zone of the server.
  const serviceUrl = withStartupOptions(database.serviceUrl, '-c timezone=Asia/Tokyo')
  pools = [1, 2].map((n) => createPool(serviceUrl, { max: 1, applicationName: `process ${n}` }))
})

beforeEach(async () => {
  await owner.query('delete from ledger_changes; update service_state set compacted_until = null')
})

afterAll(async () => {
  for (const pool of pools) await pool.end()
})

interface Change {
  folder: string
  version: number
  kind: string
  /** The first ids of ranges of three ids each. */
  ids: number[]
  /** Days before today. */
  age: number
}

async function log(changes: Change[]): Promise<void> {
  await owner.query(
    `insert into ledger_changes (schema_id, folder_id, version, kind, ids, logged_at)
     select ${schemaId}, folder, version, kind,
       (select range_agg(int8range(id::bigint, id::bigint + 3)) from json_array_elements_text(ids) id), to_timestamp(at)
     from json_to_recordset($1) as c (folder bigint, version bigint, kind text, ids json, at float)`,
    [
      JSON.stringify(
        changes.map(({ age, ...change }) => ({ ...change, at: ((today - age) * dayMs) / 1000 })),
      ),
    ],
  )
}

const sweep = (daysLater = 0, pool = pools[0]!) =>
  sweepChanges({ database: pool, retentionDays }, (today + daysLater) * dayMs)

interface Row {
  folder: string
  version: number
  kind: string
  ids: [number, number][]
}

async function readLog(): Promise<Row[]> {
  const { rows } = await owner.query<Row>(
    `select folder_id as folder, version::int, kind,
       (select coalesce(json_agg(json_build_array(lower(r), upper(r))), '[]') from unnest(ids) r) as ids
     from ledger_changes order by folder_id::bigint, version`,
  )
  return rows
}

/** The kind and id of each change of the folder that the rows name after a version. */
const changedIn = (rows: Row[], folder: string, version: number) =>
  new Set(
    rows
      .filter((row) => row.folder === folder && row.version > version)
      .flatMap(({ kind, ids }) =>
        ids.flatMap(([from, to]) => Array.from({ length: to - from }, (_, n) => `${kind} ${from + n}`)),
      ),
  )

/** @param steady whether the clock of the database was never set back */
function randomLog(random: Random, steady: boolean): Change[] {
  let version = 100
  const changes: Change[] = []
  for (let age = 45; age > 0; age -= random.fraction() * 2)
    for (let n = random.integer(0, 6); n > 0; n--)
      changes.push({
        folder: folders[random.integer(0, 1)]!,
        version: version++,
        kind: ['entries', 'entries', 'accounts', 'third_parties'][random.integer(0, 3)]!,
        ids: Array.from({ length: random.integer(1, 4) }, () => random.integer(1, 300)),
        age: age - (steady ? n * -1e-6 : random.fraction() * 3 - 1.5),
      })
  return changes
}

test.each([
  ['', true],
  [' though the clock was set back', false],
])(
  'the changes since a cursor never shrink, and a cursor is refused only if its changes were forgotten%s',
  async (_though, steady) => {
    const random = new Random(12)
    let refusals = 0
    let wider = 0
    for (let round = 0; round < 8; round++) {
      await owner.query('delete from ledger_changes; update service_state set compacted_until = null')
      const changes = randomLog(random, steady)
      await log(changes)
      const exact = await readLog()
      for (const daysLater of [0, 1, 5, 5 + random.integer(1, 30)]) {
        await sweep(daysLater)
        const kept = await readLog()
        const aged = changes.map((change) => ({ ...change, age: Math.ceil(change.age) + daysLater }))
        const young = new Set(aged.filter(({ age }) => age <= 7).map(({ version }) => version))
        const isYoung = ({ version }: Row) => young.has(version)
        if (steady) expect(kept.filter(isYoung)).toEqual(exact.filter(isYoung))
        const days = kept
          .filter((row) => !isYoung(row))
          .map(({ folder, kind, version }) =>
            [
              folder,
              kind,
              kind === 'forgotten' || aged.find((change) => change.version === version)!.age,
            ].join(' '),
          )
        if (steady) expect(days).toEqual([...new Set(days)])
        for (const folder of folders) {
          const own = changes.filter((change) => change.folder === folder)
          const marks = kept.filter((row) => row.folder === folder && row.kind === 'forgotten')
          expect(marks.length).toBeLessThanOrEqual(1)
          for (const version of [0, ...own.map((change) => change.version)]) {
            const after = own.filter((change) => change.version > version)
            if (marks.some((mark) => mark.version > version)) {
              refusals++
              expect(after.some(({ age }) => age + daysLater > retentionDays)).toBe(true)
              continue
            }
            const told = changedIn(kept, folder, version)
            expect(changedIn(exact, folder, version).isSubsetOf(told)).toBe(true)
            if (!steady) continue
            // Besides the changes after the cursor, at most those of the cursor's own day are reported.
            const day = Math.ceil(own.find((change) => change.version === version)?.age ?? 99)
            const before = own.findLast((change) => Math.ceil(change.age) > day)?.version ?? 0
            expect(told.isSubsetOf(changedIn(exact, folder, before))).toBe(true)
            if (told.size > changedIn(exact, folder, version).size) wider++
          }
        }
      }
    }
    expect(refusals).toBeGreaterThan(100)
    if (steady) expect(wider).toBeGreaterThan(100)
  },
)

/** 25,000 changes to forget, and four days to compact. */
const largeLog = `
  insert into ledger_changes (schema_id, folder_id, version, kind, ids, logged_at)
    select ${schemaId}, 1 + n % 3, n, 'entries', int8multirange(int8range(n, n + 2)),
      to_timestamp(${today} * 86400) - case when n <= 25000 then interval '33 days' else interval '13 days' end
        + n * interval '5 seconds'
    from generate_series(1, 60000) n`

test('two processes that sweep at once leave the same rows as one', async () => {
  await owner.query(largeLog)
  const alone = await sweep()
  const left = await readLog()
  expect(alone.forgotten).toBe(25_000)
  expect(alone.compacted).toBe(35_000 - left.filter(({ kind }) => kind === 'entries').length)
  expect(left.length).toBeLessThan(20)
  await owner.query('delete from ledger_changes; update service_state set compacted_until = null')
  await owner.query(largeLog)
  const both = await Promise.all(pools.map((pool) => sweep(0, pool)))
  expect(await readLog()).toEqual(left)
  expect(both[0]!.forgotten + both[1]!.forgotten).toBe(alone.forgotten)
  expect(both[0]!.compacted + both[1]!.compacted).toBe(alone.compacted)
  expect(await sweep()).toEqual({ forgotten: 0, compacted: 0 })
})

test('writers do not wait for a sweep', async () => {
  await owner.query(largeLog)
  const sweeping = pools[0]!
  const client = await sweeping.connect()
  await client.query('begin')
  await client.query(`select forget_ledger_changes(now(), 10000), compact_ledger_changes(now())`)
  await owner.query(`update entries set comment = 'x'`)
  await client.query('rollback')
  client.release()
  expect((await readLog()).at(-1)).toMatchObject({ kind: 'entries' })
})

test('direct calls of the sweep functions spare the last day, and keep the last seven days exact', async () => {
  const ages = [0, 0.5, 0.9, 2, 2.1, 6, 6.1, 40, 40.1]
  const fill = () =>
    owner.query(
      `delete from ledger_changes; update service_state set compacted_until = null;
       insert into ledger_changes (schema_id, folder_id, version, kind, ids, logged_at)
       select ${schemaId}, 1, 1000 - age * 10, 'entries', '{[1,2)}', now() - age * interval '1 day'
       from unnest(array[${ages}]) age`,
    )
  const kept = async () =>
    (await readLog()).filter(({ kind }) => kind === 'entries').map(({ version }) => version)
  const versions = (most: number) =>
    ages
      .filter((age) => age < most)
      .map((age) => 1000 - age * 10)
      .reverse()
  for (const before of [`now() + interval '1 year'`, `'infinity'`, 'null']) {
    await fill()
    for (let round = 0; round < 3; round += 1)
      await pools[0]!.query(`select forget_ledger_changes(${before}, 1000000)`)
    expect(await kept()).toEqual(versions(1))
    await fill()
    for (let round = 0; round < 100; round += 1)
      await pools[0]!.query(`select compact_ledger_changes(${before})`)
    expect((await kept()).filter((version) => version > 700)).toEqual(versions(7))
  }
})

test('old cursors of a folder stay valid while it does not change, and a folder has one mark of forgotten changes', async () => {
  const refusals = async () => {
    const { rows } = await owner.query<{ refusal: string | null }>(
      `select (read_ledger_cursor(ledger_cursor(${schemaId}, f.id, c.version, 'r'), ${schemaId}, f.id, 'r')).refusal
       from folders f cross join (values (5), (9), (10)) c (version) order by f.id, c.version`,
    )
    return rows.map(({ refusal }) => refusal)
  }
  await owner.query(
    `begin; set local grandlivre.schema_id = '${schemaId}'; update folders set ledger_version = 10`,
  )
  const change = { folder: '1', kind: 'entries', ids: [1] }
  await log([5, 9].map((version) => ({ ...change, version, age: 40 })))
  await owner.query('commit')
  await owner.query(`set grandlivre.schema_id = '${schemaId}'`)
  expect(await refusals()).toEqual(Array(9).fill(null))
  for (const daysLater of [0, 500, 5000]) {
    await sweep(daysLater)
    expect(await readLog()).toEqual([{ folder: '1', version: 9, kind: 'forgotten', ids: [] }])
    expect(await refusals()).toEqual(['forgotten', null, null, ...Array(6).fill(null)])
  }
  await log([{ ...change, version: 10, age: 0 }])
  await sweep(5000)
  expect(await readLog()).toEqual([{ folder: '1', version: 10, kind: 'forgotten', ids: [] }])
  expect(await refusals()).toEqual(['forgotten', 'forgotten', null, ...Array(6).fill(null)])
})
