/**
 * The audit across epochs: three servers replace one another, with and without rows in between. The chain stays whole.
 * Verification tells an anchor whose row was lost from an anchor whose row was cut off, and accepts no other jump.
 */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { appendRequests, type Link, listAudit, readHead, recordStaffAct } from '../../src/audit/audit.sql.ts'
import { sweepAudit } from '../../src/audit/retention.ts'
import { verifyAudit } from '../../src/audit/verify.ts'
import { createOwnerPool, createPool } from '../../src/db/pool.ts'
import { cli } from '../support/cli.ts'
import { forTests } from '../support/for-tests.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { testMasterKey } from '../support/service.ts'

const database = forTests(() => createTestDatabase())
const owner = forTests(() =>
  createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'grandlivre test' }),
)
const service = forTests(() =>
  createPool(database.serviceUrl, { max: 1, applicationName: 'grandlivre test' }),
)
let client: pg.PoolClient
/** The epoch at the beginning, and those that followed. */
const epochs: string[] = []
/** The last row of each server. */
const ends: Link[] = []
/** Rows that began epochs. */
const begun: { number: string; details: string; at: string }[] = []

const sender = randomUUID()
let batches = 0
const append = (rows: object[]) => {
  batches += 1
  return appendRequests(service, { sender, number: batches, rows })
}
const row = (at = new Date().toISOString()) => ({ at, act: 'GET /', details: '{}', outcome: 'sent' })
const head = async () => (await readHead(client))!
const epochNow = async () => (await client.query(`select pass_gate()::text as epoch`)).rows[0].epoch
const verify = (...words: string[]) => cli(database.ownerUrl, 'audit', 'verify', ...words)

/** As if the name in the database were that of a former server. */
async function takePlace(): Promise<void> {
  ends.push(await head())
  await client.query(`select setval('server_name', 1)`)
}

beforeAll(async () => {
  client = await owner.connect()
  await client.query(`set session_replication_role = replica; delete from audit_rows;
    update audit_head set count = 0, hash = decode(repeat('00', 32), 'hex'); set session_replication_role = origin`)
  epochs.push(await epochNow())
})
afterAll(() => client.release(true))

test('every writer marks the beginning of an epoch with a row of its own', async () => {
  await append([row('2020-01-01T00:00:00Z'), row()])
  await takePlace()
  // The service appends first in one epoch, and staff in the next. The third epoch has no row.
  await append([row(), row()])
  epochs.push(await epochNow())
  await takePlace()
  await recordStaffAct(client, { staff: 'someone', act: 'token issue' })
  epochs.push(await epochNow())
  await takePlace()
  const unseen = await epochNow()
  await client.query(`select setval('server_name', 1)`)
  await append([row()])
  epochs.push(await epochNow())
  const rows = (await listAudit(client, { most: 20 })).reverse()
  expect(rows.map(({ act }) => act)).toEqual([
    'GET /',
    'GET /',
    'epoch',
    'GET /',
    'GET /',
    'epoch',
    'token issue',
    'epoch',
    'GET /',
  ])
  begun.push(...rows.filter(({ act }) => act === 'epoch'))
  expect(begun.map(({ details }) => JSON.parse(details))).toEqual(
    [0, 1, 2].map((index) => ({
      former: Number(epochs[index]),
      epoch: Number(epochs[index + 1]),
      last: Number(ends[index]!.count),
    })),
  )
  expect(new Set([...epochs, unseen]).size).toBe(5)
  for (const [index, { number }] of begun.entries()) {
    const last = BigInt(ends[index]!.count)
    expect(BigInt(number) - last).toBeGreaterThan(4_000_000_000n)
    const at = rows.findIndex((each) => each.number === number)
    expect(BigInt(rows[at + 1]!.number)).toBe(BigInt(number) + 1n)
  }
  const { out, code } = await verify()
  expect([code, out]).toEqual([0, expect.stringMatching(/^The audit is whole: 9 rows, 1 to \d+\.\n/)])
  for (const [index, { number }] of begun.entries())
    expect(out).toContain(
      `Row ${number} follows row ${ends[index]!.count}: epoch ${epochs[index + 1]} began after ${epochs[index]} at 2`,
    )
})

test('staff read the start of an epoch in words', async () => {
  const { out } = await cli(database.ownerUrl, 'audit', 'list')
  expect(out).toMatch(
    new RegExp(
      `${begun[0]!.number} +\\S+Z +the database +a new epoch begins +done +epoch ${epochs[1]} follows`,
    ),
  )
  expect(out).toContain(`epoch ${epochs[1]} follows ${epochs[0]}; rows after 2 may be lost`)
})

test('verification names the failover that lost the row of an anchor, and compares any other anchor', async () => {
  for (const [index, end] of ends.entries()) {
    expect(await verify('--anchor', `${end.count}:${end.hash}`)).toMatchObject({ code: 0, error: '' })
    const { number, at } = begun[index]!
    for (const lost of [Number(end.count) + 1, Number(end.count) + 70, Number(number) - 1]) {
      const answer = await verify('--anchor', `${lost}:${'a'.repeat(64)}`)
      const time = new Date(Number(at) * 1000).toISOString()
      expect(answer.code).toBe(3)
      expect(answer.error).toContain(`names row ${lost}, which was lost in the failover of ${time}`)
      expect(answer.out).toMatch(/^The audit is whole/)
      expect(answer.out).not.toContain('are those of the anchor')
    }
    const other = await verify('--anchor', `${number}:${'a'.repeat(64)}`)
    expect(other).toMatchObject({ code: 1, out: expect.stringContaining('were replaced') })
  }
  const beyond = await verify('--anchor', `${Number((await head()).count) + 1}:${'a'.repeat(64)}`)
  expect(beyond).toMatchObject({ code: 1, out: expect.stringContaining('its end was cut off') })
})

/** Makes all hashes fit again, as the owner of the database can. */
const rehash = `do $$ declare each audit_rows; before bytea := (select hash from audit_start); begin
  for each in select * from audit_rows order by number loop
    before := audit_hash(before, each);
    update audit_rows set hash = before where number = each.number;
  end loop;
  update audit_head set count = (select max(number) from audit_rows), hash = before;
end $$`

/** Each function takes the numbers of a row that begins an epoch and of the row before it. */
const forgeries: [string, (number: string, last: string) => string, RegExp][] = [
  ['the row is removed', (number) => `delete from audit_rows where number = ${number}`, /is missing/],
  [
    'the row is another act',
    (number) => `update audit_rows set act = 'token issue' where number = ${number}`,
    /is missing/,
  ],
  [
    'the row before it is removed',
    (_, last) => `delete from audit_rows where number = ${last}`,
    /begins an epoch after row \d+, but follows row/,
  ],
  [
    'it says another last row',
    (number, last) =>
      `update audit_rows set details = replace(details, '"last":${last}', '"last":${Number(last) + 1}') where number = ${number}`,
    /begins an epoch after row/,
  ],
  [
    'its jump is shorter',
    (number, last) => `update audit_rows set number = ${last} + 1000 where number = ${number}`,
    /its number is not one that follows/,
  ],
  [
    'it does not jump',
    (number, last) => `update audit_rows set number = ${last} + 1 where number = ${number}`,
    /its number is not one that follows/,
  ],
  [
    'its jump is longer',
    (number) => `update audit_rows set number = number + (2 ^ 41)::bigint where number >= ${number}`,
    /its number is not one that follows/,
  ],
  [
    'it is later',
    (number) => `update audit_rows set at = at + interval '10 years' where number = ${number}`,
    /its number is not one that follows/,
  ],
  [
    'it names no epochs',
    (number) => `update audit_rows set details = '{}' where number = ${number}`,
    /its details are not those/,
  ],
  [
    'it follows another epoch',
    (number) =>
      `update audit_rows set details = regexp_replace(details, '"former":\\d+', '"former":5') where number = ${number}`,
    /which is not the one before/,
  ],
]

async function problemAfter(text: string): Promise<string | undefined> {
  await client.query('begin; set local session_replication_role = replica')
  try {
    await client.query(text)
    return (await verifyAudit(client, { masterKeys: [testMasterKey] })).problem
  } finally {
    await client.query('rollback')
  }
}

test.each(forgeries)(
  'verification finds this change although all hashes fit: %s',
  async (_, falsify, problem) => {
    expect(await problemAfter(rehash)).toBeUndefined()
    // The last row that begins an epoch: its former epoch has such a row, too.
    const text = falsify(begun[2]!.number, ends[2]!.count)
    expect(await problemAfter(`${text}; ${rehash}`)).toMatch(problem)
  },
)

test('verification names the failover to staff if rows before an epoch were cut off and all hashes fit', async () => {
  const { number } = begun[2]!
  const { count, hash } = ends[2]!
  await client.query('begin; set local session_replication_role = replica')
  await client.query(`delete from audit_rows where number = ${count};
    update audit_rows set details = replace(details, '"last":${count}', '"last":${Number(count) - 1}')
    where number = ${number}; ${rehash}`)
  const verified = await verifyAudit(client, { masterKeys: [testMasterKey], anchor: { count, hash } })
  await client.query('rollback')
  expect(verified.problem).toBeUndefined()
  expect(verified.lostIn).toMatchObject({ number, last: begun[1]!.number, at: begun[2]!.at })
})

test('verification finds a head of the chain that names another epoch', async () => {
  expect(await problemAfter('update audit_head set epoch = epoch + 1')).toMatch(/The head names epoch/)
})

test('the database role of the service cannot record a new epoch in the audit', async () => {
  const before = await head()
  await expect(append([{ ...row(), act: 'epoch' }])).rejects.toMatchObject({ code: '22023' })
  expect(await head()).toEqual(before)
})

test('retention deletes rows both before and after the start of an epoch', async () => {
  expect(await sweepAudit({ database: service, months: 12, signingKey: async () => testMasterKey })).toBe(1)
  expect((await verify('--anchor', `${ends[1]!.count}:${ends[1]!.hash}`)).code).toBe(0)
  await client.query(`set session_replication_role = replica;
    update audit_rows set at = '2021-01-01' where number < ${begun[1]!.number}; set session_replication_role = origin`)
  expect(await sweepAudit({ database: service, months: 12, signingKey: async () => testMasterKey })).toBe(4)
  const { out } = await verify()
  // Their times were changed here, and nothing else was.
  expect(out).not.toContain(begun[0]!.number)
  const lost = await verify('--anchor', `${Number(ends[1]!.count) + 1}:${'a'.repeat(64)}`)
  expect(lost.code).toBe(3)
  const old = await verify('--anchor', `${ends[0]!.count}:${ends[0]!.hash}`)
  expect(old).toMatchObject({ code: 1, out: expect.stringContaining('which retention has deleted') })
})
