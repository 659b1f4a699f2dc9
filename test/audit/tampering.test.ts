/**
 * Every way of falsifying the audit is found: rows changed, removed, added and swapped, its end cut off, its start and
 * head forged. TAMPERINGS sets how many random ones are tried.
 */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Random } from '../../packages/sample/src/made-up/random.ts'
import { appendRequests, type Link, readHead, recordStaffAct } from '../../src/audit/audit.sql.ts'
import { sweepAudit } from '../../src/audit/retention.ts'
import { verifyAudit } from '../../src/audit/verify.ts'
import { createOwnerPool, createPool } from '../../src/db/pool.ts'
import { forTests } from '../support/for-tests.ts'
import { hostileNames } from '../support/ledgers/hostile-ledger.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { testMasterKey } from '../support/service.ts'

const tamperings = Number(process.env['TAMPERINGS'] ?? 200)
const seed = Number(process.env['SEED'] ?? 1)

const database = forTests(() => createTestDatabase())
const owner = forTests(() =>
  createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'grandlivre test' }),
)
let client: pg.PoolClient
/** Numbers of the rows that retention has left. */
let first: number
let last: number
let anchor: Link

beforeAll(async () => {
  client = await owner.connect()
  // The row of the migration is too young to be followed by old ones.
  await client.query(`set session_replication_role = replica; delete from audit_rows;
    update audit_head set count = 0, hash = decode(repeat('00', 32), 'hex'); set session_replication_role = origin`)
  const service = createPool(database.serviceUrl, { max: 1, applicationName: 'grandlivre test' })
  const append = (number: number, count: number, at: string) =>
    appendRequests(service, { sender, number, rows: Array.from({ length: count }, (_, i) => rowOf(i, at)) })
  const sender = randomUUID()
  await append(1, 10, '2020-01-01T00:00:00Z')
  await append(2, 40, new Date().toISOString())
  await recordStaffAct(client, {
    staff: 'someone',
    act: 'token issue',
    tokenId: '7',
    details: { partner: 'ACME' },
  })
  expect(await sweepAudit({ database: service, months: 12, signingKey: async () => testMasterKey })).toBe(10)
  await service.end()
  anchor = (await readHead(client))!
  first = 11
  last = Number(anchor.count)
  // Triggers keep nobody from falsifying rows on purpose.
  await client.query('set session_replication_role = replica')
})
afterAll(() => client.release(true))

function rowOf(index: number, at: string): object {
  return {
    at,
    third_party_id: '1000',
    token_id: String(1001 + index),
    act: 'GET /api/v1/mad/movements',
    schema_id: '100',
    folder_id: String(110 + (index % 3)),
    request_id: `"request","${index}`,
    details: JSON.stringify({ selection: hostileNames[index % hostileNames.length] }),
    rows: index % 4 === 0 ? null : index,
    bytes: index % 5 === 0 ? null : index * 1000,
    sha256: index % 4 === 0 ? null : index.toString(16).padStart(64, '0'),
    cursor: `${index}.1.x`,
    outcome: 'sent',
    code: null,
  }
}

/** The first problem after a change, which is then undone. */
async function problemAfter(falsify: () => Promise<unknown>, noted?: Link): Promise<string | undefined> {
  await client.query('begin')
  try {
    await falsify()
    return (await verifyAudit(client, { masterKeys: [testMasterKey], anchor: noted })).problem
  } finally {
    await client.query('rollback')
  }
}

const columns = {
  numbers: ['third_party_id', 'token_id', 'schema_id', 'folder_id', 'rows', 'bytes'],
  texts: ['staff', 'act', 'request_id', 'details', 'sha256', 'cursor', 'outcome', 'code'],
}
const required = ['act', 'details', 'outcome']

function otherHash(random: Random): string {
  const byte = random.integer(0, 31)
  return `set_byte(hash, ${byte}, 255 - get_byte(hash, ${byte}))`
}

/** Each takes a row and says what it does, in SQL. */
const ways: Record<string, (random: Random, row: number) => string> = {
  'a number changes': (random, row) => {
    const column = random.pick(columns.numbers)
    const value = random.pick([`${column} + 1`, `-${column}`, `${column} * 10`])
    return `update audit_rows set ${column} = case when ${column} is null then 0 else coalesce(nullif(${value}, ${column}), 5) end
      where number = ${row}`
  },
  'a number is taken away or given': (random, row) => {
    const column = random.pick(columns.numbers)
    return `update audit_rows set ${column} = case when ${column} is null then 0 end where number = ${row}`
  },
  'a text changes': (random, row) => {
    const column = random.pick(columns.texts)
    const value = random.pick([
      `${column} || ' '`,
      `${column} || '"'`,
      `'x' || ${column}`,
      `substr(${column}, 2)`,
    ])
    return `update audit_rows set ${column} = coalesce(nullif(${value}, ${column}), 'x') where number = ${row}`
  },
  'a text is taken away or given': (random, row) => {
    const column = random.pick(columns.texts.filter((name) => !required.includes(name)))
    return `update audit_rows set ${column} = case when ${column} is null then '' end where number = ${row}`
  },
  'a text moves to the next column': (random, row) => {
    const [one, other] = random.pick([
      ['act', 'request_id'],
      ['request_id', 'details'],
      ['sha256', 'cursor'],
      ['cursor', 'outcome'],
    ])
    return `update audit_rows set ${one} = concat(${one}, '","', ${other}), ${other} = '' where number = ${row}`
  },
  'the time changes by a microsecond': (random, row) =>
    `update audit_rows set at = at ${random.pick(['+', '-'])} interval '1 microsecond' where number = ${row}`,
  'the time is no time': (_, row) => `update audit_rows set at = 'infinity' where number = ${row}`,
  'the hash changes': (random, row) =>
    `update audit_rows set hash = ${otherHash(random)} where number = ${row}`,
  'a row is removed': (_, row) => `delete from audit_rows where number = ${row}`,
  'a row is removed, and the rest moves up': (_, row) => `delete from audit_rows where number = ${row};
    update audit_rows set number = -number where number > ${row};
    update audit_rows set number = -number - 1 where number < 0; update audit_head set count = count - 1`,
  'rows are removed': (random, row) =>
    `delete from audit_rows where number between ${row} and ${row + random.integer(1, 10)}`,
  'a row is inserted': (_, row) => `update audit_rows set number = -number where number >= ${row};
    update audit_rows set number = -number + 1 where number < 0;
    insert into audit_rows select (r).* from (
      select jsonb_populate_record(a, '{"number": ${row}}') as r from audit_rows a where number = ${row + 1}) s;
    update audit_head set count = count + 1`,
  'a row is inserted with a hash that fits the row before': (_, row) => `
    update audit_rows set number = -number where number >= ${row};
    update audit_rows set number = -number + 1 where number < 0;
    insert into audit_rows select (r).* from (
      select jsonb_populate_record(a, '{"number": ${row}, "act": "GET /nothing"}') as r from audit_rows a
      where number = ${row + 1}) s;
    update audit_rows a set hash = audit_hash(coalesce((select hash from audit_rows where number = ${row - 1}),
      (select hash from audit_start)), a) where number = ${row};
    update audit_head set count = count + 1`,
  'a row is added at the end': () => `insert into audit_rows select (r).* from (
      select jsonb_populate_record(a, '{"number": ${last + 1}}') as r from audit_rows a where number = ${last}) s;
    update audit_rows a set hash = audit_hash((select hash from audit_head), a) where number = ${last + 1}`,
  'a row comes before the start': (random) => `insert into audit_rows select (r).* from (
      select jsonb_populate_record(a, '{"number": ${random.integer(-3, first - 1)}}') as r from audit_rows a
      where number = ${last}) s`,
  'two rows change places': (random, row) => {
    const other = row === last ? first : random.integer(row + 1, last)
    return `update audit_rows set number = -number where number in (${row}, ${other});
      update audit_rows set number = ${row} + ${other} + number where number < 0`
  },
  'the end is cut off': (random) => `delete from audit_rows where number > ${last - random.integer(1, 20)}`,
  'the start is cut off': (_, row) => `delete from audit_rows where number <= ${row}`,
  'the start moves on, unsigned': (
    _,
    row,
  ) => `update audit_start s set count = a.number, hash = a.hash, signature = null
      from audit_rows a where a.number = ${row}; delete from audit_rows where number <= ${row}`,
  'the start moves on under its old signature': (
    _,
    row,
  ) => `update audit_start s set count = a.number, hash = a.hash
      from audit_rows a where a.number = ${row}; delete from audit_rows where number <= ${row}`,
  'the start moves on under a forged signature': (random, row) => `
      update audit_start s set count = a.number, hash = a.hash,
        signature = sha256('\\x${random.integer(16, 255).toString(16)}') from audit_rows a where a.number = ${row};
      delete from audit_rows where number <= ${row}`,
  'the start names another time': () => `update audit_start set at = at + interval '1 second'`,
  'the head has another count': (random) =>
    `update audit_head set count = count ${random.pick(['+', '-'])} 1`,
  'the head has another hash': (random) => `update audit_head set hash = ${otherHash(random)}`,
}

/** Nothing in the database contradicts these: only what was noted elsewhere. */
const waysAgainstAnchor: typeof ways = {
  'the end is cut off, and the head fits': (random) => {
    const end = last - random.integer(1, 20)
    return `delete from audit_rows where number > ${end};
      update audit_head h set count = a.number, hash = a.hash from audit_rows a where a.number = ${end}`
  },
  'the end is cut off, and other rows are appended': (random) => {
    const end = last - random.integer(1, 20)
    const rows = JSON.stringify(
      Array.from({ length: random.integer(20, 22) }, (_, i) => rowOf(i, '2026-01-01')),
    )
    return `delete from audit_rows where number > ${end};
      update audit_head h set count = a.number, hash = a.hash from audit_rows a where a.number = ${end};
      select append_audit('${rows.replaceAll("'", "''")}', null)`
  },
  'a row changes, and all hashes from there on are computed again': (random, row) => `
    update audit_rows set ${random.pick(['rows = 1234567', "sha256 = 'x'", "at = '2026-01-01'"])} where number = ${row};
    do $$ declare each audit_rows; before bytea := (select hash from audit_start); begin
      for each in select * from audit_rows order by number loop
        before := audit_hash(before, each);
        update audit_rows set hash = before where number = each.number;
      end loop;
      update audit_head set hash = before;
    end $$`,
}

test('an untouched audit is whole, and its hashes equal those that the command computes', async () => {
  expect(await problemAfter(async () => {})).toBeUndefined()
  expect(await problemAfter(async () => {}, anchor)).toBeUndefined()
})

test(`each of ${tamperings} random tamperings is found`, { timeout: 600_000 }, async () => {
  const random = new Random(seed)
  const found = new Map<string, number>()
  const kinds = [...Object.keys(ways), ...Object.keys(waysAgainstAnchor)]
  for (let i = 0; i < tamperings; i++) {
    const kind = i < kinds.length ? kinds[i]! : random.pick(kinds)
    const text = (ways[kind] ?? waysAgainstAnchor[kind])!(random, random.integer(first, last))
    const problem = await problemAfter(() => client.query(text), kind in ways ? undefined : anchor)
    expect(problem, `${kind}: ${text}`).toBeDefined()
    found.set(kind, (found.get(kind) ?? 0) + 1)
  }
  expect([...found.values()].reduce((sum, count) => sum + count)).toBe(tamperings)
  expect(found.size).toBe(kinds.length)
  expect(await problemAfter(async () => {}, anchor)).toBeUndefined()
})
