/** Digests of many ledgers: they match the rows of the stream, are kept, and are computed again after changes only. */
import { createHash } from 'node:crypto'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { createFolder } from '../../../src/ledger/tenants.sql.ts'
import { type LedgerDigests, plainLedgerBlocks } from '../../support/changes/ledger-digests.ts'
import { type LedgerItem, readLedgers } from '../../support/changes/ledger-stream.ts'
import { forTests } from '../../support/for-tests.ts'
import { addLargeExercice } from '../../support/ledgers/large-exercice.ts'
import { credentials, folders } from '../../support/ledgers/tenants.ts'
import { startTestService } from '../../support/service.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'
import { until } from '../../support/until.ts'

const stage = forTests(setExportStage)

const society = folders.first.folderId
const empty = '113'
const ofFolder = `schema_id = 100 and folder_id = ${society}`

beforeAll(async () => {
  await addLargeExercice(stage.staff.client, 12_000)
  const { schemaId, firmId } = folders.first
  await createFolder(stage.staff.client, { schemaId, firmId, id: empty, name: 'Empty' })
  const ofBooks = `schema_id, folder_id`
  const at = `100, ${society}`
  await change(`insert into vat_codes (${ofBooks}, id, code, rate) values (${at}, 1, 'V1', 2000);
    insert into accounts (${ofBooks}, id, number, name) values (${at}, 9001, '401900', 'A'), (${at}, 9002, '421900', 'B');
    insert into companies (${ofBooks}, account_id, name, vat_id) values (${at}, 9001, 'Société', 1);
    insert into employees (${ofBooks}, account_id, last_name) values (${at}, 9002, 'Dupré');
    insert into banks (${ofBooks}, id, iban, bic, journal_id) values (${at}, 1, 'FR76', 'AGRIFRPP', 33)`)
})

beforeEach(() => change('delete from ledger_blocks'))

type Headers = Record<string, string>

const change = async (sql: string) =>
  (await stage.staff.client.query(`set search_path = grandlivre; ${sql}`)) as unknown as { rows: never[] }[]

async function post(
  route: 'blocks' | 'changes',
  body: unknown,
  headers: Headers = stage.firm,
  url = stage.service.url,
) {
  return fetch(`${url}/api/v1/mad/ledgers/${route}?version=1.0.0`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

async function ask(body: unknown, headers?: Headers, url?: string): Promise<LedgerDigests[]> {
  const answer = await post('blocks', body, headers, url)
  const text = await answer.text()
  expect([answer.status, answer.headers.get('content-type')], text).toEqual([200, 'application/x-ndjson'])
  expect(text === '' || text.endsWith('\n')).toBe(true)
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}

const digestsOf = async (id = society) => (await ask({ ledgers: [{ society: id }] }))[0]!

async function ledgersOf(body: unknown, headers?: Headers): Promise<LedgerItem[]> {
  return readLedgers(await (await post('changes', body, headers)).text()).ledgers
}

const ledgerOf = async (id = society) => (await ledgersOf({ ledgers: [{ society: id }] }))[0]!

/** Waits until the digests of that state are kept: they are stored after the ledger was sent. */
async function keptAt(cursor: string, id = society): Promise<void> {
  const isKept = () =>
    stage.staff.client.query('select from grandlivre.ledger_blocks where folder_id = $1 and cursor = $2', [
      id,
      cursor,
    ])
  await until(async () => (await isKept()).rowCount === 1)
}

const forged = createHash('sha256').update('forged').digest('hex')

/** Replaces a kept digest. An answer contains the forged one only if the rows were not rendered again. */
const forgeBlock = (place: number) =>
  change(`update ledger_blocks set digests = overlay(digests placing sha256('forged') from ${(place - 1) * 32 + 1} for 32)
    where folder_id = ${society}`)
const forgeTables = () =>
  change(
    `update ledger_blocks set tables = overlay(tables placing sha256('forged') from 1 for 32) where folder_id = ${society}`,
  )

const forgedPlaces = ({ blocks }: LedgerDigests) =>
  blocks.flatMap(({ sha256 }, i) => (sha256 === forged ? [i + 1] : []))

test('for all ledgers of a firm, the digests are those of the rows in the stream, including drafts', async () => {
  const answers = await ask({})
  const ledgers = await ledgersOf({})
  expect(answers.map((each) => each.society)).toEqual([society, folders.sameFirm.folderId, empty])
  expect(ledgers[0]!.tables.movements!.some((row) => row.split('\t')[6] === 't')).toBe(true)
  expect(answers[0]!.blocks.length).toBeGreaterThan(10)
  for (const [i, ledger] of ledgers.entries())
    expect(answers[i]).toEqual(plainLedgerBlocks(ledger, answers[i]!))
})

test('an empty ledger has no block, and the digest of zero bytes', async () => {
  for (const ledger of [await digestsOf(empty), await digestsOf(empty)]) {
    const nothing = createHash('sha256').digest('hex')
    expect(ledger).toMatchObject({ society: empty, rows: 0, blocks: [], digest: nothing })
    expect(ledger.tables['accounts']).toBe(nothing)
    expect(ledger.tables['folders']).not.toBe(nothing)
  }
})

test('the stream keeps the digests of a full ledger, in any encoding, but not of one since a cursor', async () => {
  for (const encoding of ['identity', 'zstd', 'gzip']) {
    await change('delete from ledger_blocks')
    const answer = await post(
      'changes',
      { ledgers: [{ society }] },
      { ...stage.firm, 'Accept-Encoding': encoding },
    )
    const { cursor } = readLedgers(await answer.text()).ledgers[0]!
    await keptAt(cursor)
  }
  const { cursor } = await ledgerOf()
  await keptAt(cursor)
  await change('delete from ledger_blocks')
  await ledgersOf({ ledgers: [{ society, since: cursor }] })
  // Digests of the answer before this one would be stored before these.
  await keptAt((await ledgerOf(folders.sameFirm.folderId)).cursor, folders.sameFirm.folderId)
  expect((await change(`select from ledger_blocks where folder_id = ${society}`))[1]!.rows).toEqual([])
})

test('if a ledger has not changed, the answer reads no row and opens no snapshot', async () => {
  const ledger = await ledgerOf()
  await keptAt(ledger.cursor)
  await change('revoke select on movements, entries, accounts, exercices from grandlivre_service')
  try {
    const digests = await digestsOf()
    expect(digests).toEqual(plainLedgerBlocks(ledger, digests))
  } finally {
    await change('grant select on movements, entries, accounts, exercices to grandlivre_service')
  }
})

test('only blocks with changed entries are rendered again, by the route of blocks and by full ledgers; unchanged tables are not', async () => {
  const before = await digestsOf()
  await keptAt(before.cursor)
  for (const place of [2, 5, 9]) await forgeBlock(place)
  await forgeTables()
  const inBlock = (place: number) =>
    `id = (select min(id) from entries where ${ofFolder} and id >= ${before.blocks[place - 1]!.from})`
  await change(`update entries set comment = 'x' where ${ofFolder} and ${inBlock(2)}`)
  const after = await digestsOf()
  expect(forgedPlaces(after)).toEqual([5, 9])
  expect(after.tables['folders']).toBe(forged)
  await keptAt(after.cursor)

  await change(`update entries set comment = 'x' where ${ofFolder} and ${inBlock(5)}`)
  const { cursor, end } = await ledgerOf()
  await keptAt(cursor)
  expect(forgedPlaces(await digestsOf())).toEqual([9])
  // The full ledger rendered its tables, so the forged digest is gone.
  expect((await digestsOf()).tables).toEqual(end.tables)
})

test('rows of unchanged blocks are not read again', async () => {
  const { cursor, blocks } = await digestsOf()
  await keptAt(cursor)
  const { from, to } = blocks[3]!
  await change(`update entries set comment = 'read' where ${ofFolder}
    and id = (select min(id) from entries where ${ofFolder} and id >= ${from})`)
  const readable = (id: string) =>
    `case when ${id} between ${from} and ${to} then true else refuse_reading() end`
  await change(`create function refuse_reading() returns boolean language plpgsql
      as 'begin raise exception ''a row of an unchanged block is read''; end';
    create policy changed on movements as restrictive to grandlivre_service using (${readable('entry_id')});
    create policy changed on entries as restrictive to grandlivre_service using (${readable('id')})`)
  try {
    expect(await digestsOf()).toMatchObject({ blocks: { length: blocks.length } })
  } finally {
    await change('drop function refuse_reading cascade')
  }
  const ledger = await ledgerOf()
  const digests = await digestsOf()
  expect(digests).toEqual(plainLedgerBlocks(ledger, digests))
})

test('tables that the caller has are not rendered again where only entries changed', async () => {
  const { cursor, end } = await ledgerOf()
  await keptAt(cursor)
  await change(`update entries set comment = 'only entries' where ${ofFolder} and id = 39`)
  await change(`create function refuse_reading() returns boolean language plpgsql
      as 'begin raise exception ''companies are read''; end';
    create policy unread on companies as restrictive to grandlivre_service using (refuse_reading())`)
  const since = { society, since: cursor, tables: end.tables }
  try {
    const [ledger] = await ledgersOf({ ledgers: [since] })
    expect(ledger!.end.tables).toEqual(end.tables)
    expect(Object.keys(ledger!.tables)).toEqual(['movements'])
  } finally {
    await change('drop function refuse_reading cascade')
  }
  await change(`update companies set siren = '123456789' where ${ofFolder}`)
  const [ledger] = await ledgersOf({ ledgers: [since] })
  expect(Object.keys(ledger!.tables)).toEqual(['accounts', 'movements'])
})

test('digests of another rendering, or older than the log of changes, are ignored', async () => {
  const other = await startTestService(stage.database, { timeZone: 'Asia/Tokyo' })
  try {
    const [digests] = await ask({ ledgers: [{ society }] }, stage.firm, other.url)
    await keptAt(digests!.cursor)
    await forgeBlock(1)
    await forgeTables()
    const own = await digestsOf()
    expect(own).toEqual(plainLedgerBlocks(await ledgerOf(), own))
    await keptAt(own.cursor)
  } finally {
    await other.stop()
  }
  await forgeBlock(1)
  await forgeTables()
  await change(`insert into ledger_changes (schema_id, folder_id, version, kind, ids)
    values (100, ${society}, next_ledger_version(100, ${society}), 'forgotten', '{}')`)
  const digests = await digestsOf()
  expect(digests).toEqual(plainLedgerBlocks(await ledgerOf(), digests))
  await keptAt(digests.cursor)
})

test('folders of others are refused while the rest is answered, and digests of each tenant are kept apart', async () => {
  const ids = [folders.otherTenant.folderId, society, folders.otherFirm.folderId, '999999']
  const answers: object[] = await ask({ ledgers: ids.map((id) => ({ society: id })) })
  const refused = (id: string) => ({ refused: id, code: 'ERR-FOLDER-NOT-FOUND', message: expect.any(String) })
  expect(answers).toEqual([
    refused(ids[0]!),
    expect.objectContaining({ society }),
    refused(ids[2]!),
    refused(ids[3]!),
  ])
  const secret = await stage.staff.thirdParty('BLOCKS-STRANGER')
  const stranger = credentials(await stage.staff.token('BLOCKS-STRANGER', 'api', folders.otherTenant), secret)
  const [own] = await ask({}, stranger)
  const [ledger] = await ledgersOf({}, stranger)
  expect(own).toEqual(plainLedgerBlocks(ledger!, own!))
  expect(own!.society).toBe(folders.otherTenant.folderId)
  // A company token opens only its folder; a header that names a folder allows only this one.
  const two = { ledgers: [{ society }, { society: folders.sameFirm.folderId }] }
  for (const headers of [stage.company, { ...stage.firm, 'society-id': society }])
    expect(await ask(two, headers)).toEqual([
      expect.objectContaining({ society }),
      refused(folders.sameFirm.folderId),
    ])
  expect((await ask({}, stage.company)).map((each) => each.society)).toEqual([society])
})

test('an answer succeeds even if its digests cannot be stored', async () => {
  await change('revoke insert on ledger_blocks from grandlivre_service')
  try {
    const digests = await digestsOf()
    expect(digests).toEqual(plainLedgerBlocks(await ledgerOf(), digests))
    await until(() => stage.service.lines.filter((line) => line.includes('"blocks.notKept"')).length >= 2)
  } finally {
    await change('grant insert on ledger_blocks to grandlivre_service')
  }
})

test('a request with a cursor is refused', async () => {
  const answer = await post('blocks', { ledgers: [{ society, since: 'x' }] })
  expect(answer.status).toBe(400)
  expect(await answer.json()).toMatchObject({
    error: { details: { issues: [{ parameter: 'ledgers.0.since' }] } },
  })
})
