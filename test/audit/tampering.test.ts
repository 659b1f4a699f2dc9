/**
 * Every way of falsifying the audit is found: rows changed, removed, added and swapped, its end cut off, its start and
 * head forged. TAMPERINGS sets how many random ones are tried in all.
 */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { appendRequests, type Link, readHead, recordStaffAct } from '../../src/audit/audit.sql.ts'
import { sweepAudit } from '../../src/audit/retention.ts'
import { verifyAudit } from '../../src/audit/verify.ts'
import { createOwnerPool, createPool } from '../../src/db/pool.ts'
import { shrinking, tries } from '../support/changes/properties.ts'
import { forTests } from '../support/for-tests.ts'
import { hostileNames } from '../support/ledgers/hostile-ledger.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { testMasterKey } from '../support/service.ts'

const tamperings = Number(process.env['TAMPERINGS'] ?? 200)
/** Numbers of the rows that retention has left. */
const first = 11
const last = 52

const database = forTests(() => createTestDatabase())
const owner = forTests(() =>
  createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'grandlivre test' }),
)
let client: pg.PoolClient
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
  expect(anchor.count).toBe(String(last))
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
async function problemAfter(falsify: string, noted?: Link): Promise<string | undefined> {
  await client.query('begin')
  try {
    await client.query(falsify)
    return (await verifyAudit(client, { masterKeys: [testMasterKey], anchor: noted })).problem
  } finally {
    await client.query('rollback')
  }
}

const numbers = ['third_party_id', 'token_id', 'schema_id', 'folder_id', 'rows', 'bytes']
const required = ['act', 'details', 'outcome']
const optional = ['staff', 'request_id', 'sha256', 'cursor', 'code']

const anyOf = <Value>(values: readonly Value[]) => fc.constantFrom(...values)
const from = (min: number, max: number) => fc.integer({ min, max })

/** Draws a row and what else a change needs. @param sql the change */
function draw<Drawn extends unknown[]>(
  sql: (row: number, ...drawn: Drawn) => string,
  ...drawn: { [Place in keyof Drawn]: fc.Arbitrary<Drawn[Place]> }
): fc.Arbitrary<string> {
  return fc.tuple(from(first, last), ...drawn).map(([row, ...others]) => sql(row, ...(others as Drawn)))
}

const otherHash = from(0, 31).map((byte) => `set_byte(hash, ${byte}, 255 - get_byte(hash, ${byte}))`)

const set = (row: number, column: string, value: string) =>
  `update audit_rows set ${column} = ${value} where number = ${row};`
const makeRoom = (row: number) => `update audit_rows set number = -number where number >= ${row};
  update audit_rows set number = -number + 1 where number < 0; update audit_head set count = count + 1;`
/** @param values JSON of the columns that differ from those of the other row */
const copyRow = (other: number, values: object) => `insert into audit_rows select (r).* from (
  select jsonb_populate_record(a, '${JSON.stringify(values)}') as r from audit_rows a where number = ${other}) s;`
const moveStart = (row: number, signature: string) => `
  update audit_start s set count = a.number, hash = a.hash, signature = ${signature}
  from audit_rows a where a.number = ${row}; delete from audit_rows where number <= ${row};`
const cutEnd = (end: number) => `delete from audit_rows where number > ${end};`
const endHeadAt = (end: number) =>
  `update audit_head h set count = a.number, hash = a.hash from audit_rows a where a.number = ${end};`
const anEnd = from(last - 20, last - 1)

const ways: Record<string, fc.Arbitrary<string>> = {
  'a number changes': draw(
    (row, column, change) => {
      const changed = `coalesce(nullif(${change.replace('n', column)}, ${column}), 5)`
      return set(row, column, `case when ${column} is null then 0 else ${changed} end`)
    },
    anyOf(numbers),
    anyOf(['n + 1', '-n', 'n * 10']),
  ),
  'a number is taken away or given': draw(
    (row, column) => set(row, column, `case when ${column} is null then 0 end`),
    anyOf(numbers),
  ),
  'a text changes': draw(
    (row, column, change) =>
      set(row, column, `coalesce(nullif(${change.replace('text', column)}, ${column}), 'x')`),
    anyOf([...required, ...optional]),
    anyOf([`text || ' '`, `text || '"'`, `'x' || text`, 'substr(text, 2)']),
  ),
  'a text is taken away or given': draw(
    (row, column) => set(row, column, `case when ${column} is null then '' end`),
    anyOf(optional),
  ),
  'a text moves to the next column': draw(
    (row, [one, other]) => set(row, one!, `concat(${one}, '","', ${other}), ${other} = ''`),
    anyOf([
      ['act', 'request_id'],
      ['request_id', 'details'],
      ['sha256', 'cursor'],
      ['cursor', 'outcome'],
    ]),
  ),
  'the time changes by a microsecond': draw(
    (row, sign) => set(row, 'at', `at ${sign} interval '1 microsecond'`),
    anyOf(['+', '-']),
  ),
  'the time is no time': draw((row) => set(row, 'at', `'infinity'`)),
  'the hash changes': draw((row, hash) => set(row, 'hash', hash), otherHash),
  'a row is removed': draw((row) => `delete from audit_rows where number = ${row}`),
  'a row is removed, and the rest moves up': draw(
    (row) => `delete from audit_rows where number = ${row};
    update audit_rows set number = -number where number > ${row};
    update audit_rows set number = -number - 1 where number < 0; update audit_head set count = count - 1`,
  ),
  'rows are removed': draw(
    (row, more) => `delete from audit_rows where number between ${row} and ${row + more}`,
    from(1, 10),
  ),
  'a row is inserted': draw((row) => makeRoom(row) + copyRow(row + 1, { number: row })),
  'a row is inserted with a hash that fits the row before': draw(
    (row) =>
      `${makeRoom(row)} ${copyRow(row + 1, { number: row, act: 'GET /nothing' })}
    update audit_rows a set hash = audit_hash(coalesce((select hash from audit_rows where number = ${row - 1}),
      (select hash from audit_start)), a) where number = ${row}`,
  ),
  'a row is added at the end': fc.constant(
    `${copyRow(last, { number: last + 1 })}
    update audit_rows a set hash = audit_hash((select hash from audit_head), a) where number = ${last + 1}`,
  ),
  'a row comes before the start': from(-3, first - 1).map((number) => copyRow(last, { number })),
  'two rows change places': fc.uniqueArray(from(first, last), { minLength: 2, maxLength: 2 }).map(
    ([one, other]) => `update audit_rows set number = -number where number in (${one}, ${other});
      update audit_rows set number = ${one! + other!} + number where number < 0`,
  ),
  'the end is cut off': anEnd.map(cutEnd),
  'the start is cut off': draw((row) => `delete from audit_rows where number <= ${row}`),
  'the start moves on, unsigned': draw((row) => moveStart(row, 'null')),
  'the start moves on under its old signature': draw((row) => moveStart(row, 'signature')),
  'the start moves on under a forged signature': draw(
    (row, byte) => moveStart(row, `sha256('\\x${byte.toString(16)}')`),
    from(16, 255),
  ),
  'the start names another time': fc.constant(`update audit_start set at = at + interval '1 second'`),
  'the head has another count': anyOf(['+', '-']).map(
    (sign) => `update audit_head set count = count ${sign} 1`,
  ),
  'the head has another hash': otherHash.map((hash) => `update audit_head set hash = ${hash}`),
}

/** Nothing in the database contradicts these, so only an anchor that was noted elsewhere reveals them. */
const waysAgainstAnchor: typeof ways = {
  'the end is cut off, and the head fits': anEnd.map((end) => cutEnd(end) + endHeadAt(end)),
  'the end is cut off, and other rows are appended': fc.tuple(anEnd, from(20, 22)).map(([end, count]) => {
    const rows = JSON.stringify(Array.from({ length: count }, (_, i) => rowOf(i, '2026-01-01')))
    return `${cutEnd(end)} ${endHeadAt(end)} select append_audit('${rows.replaceAll("'", "''")}', null)`
  }),
  'a row changes, and all hashes from there on are computed again': draw(
    (row, change) => `update audit_rows set ${change} where number = ${row};
    do $$ declare each audit_rows; before bytea := (select hash from audit_start); begin
      for each in select * from audit_rows order by number loop
        before := audit_hash(before, each);
        update audit_rows set hash = before where number = each.number;
      end loop;
      update audit_head set hash = before;
    end $$`,
    anyOf(['rows = 1234567', "sha256 = 'x'", "at = '2026-01-01'"]),
  ),
}

const all = [
  ...Object.entries(ways).map(([name, way]) => [name, way, false] as const),
  ...Object.entries(waysAgainstAnchor).map(([name, way]) => [name, way, true] as const),
].map((each, at) => [...each, at] as const)

test.each(all)('verification finds that %s', { timeout: 600_000 }, async (_, way, isAnchored, at) => {
  const falsifying = fc.asyncProperty(
    way,
    shrinking(async (text) => {
      expect(await problemAfter(text, isAnchored ? anchor : undefined)).toBeDefined()
    }),
  )
  await fc.assert(falsifying, tries(Math.ceil(tamperings / all.length), at))
})

test('an untouched audit is whole, and its hashes equal those that the command computes', async () => {
  expect(await problemAfter('')).toBeUndefined()
  expect(await problemAfter('', anchor)).toBeUndefined()
})
