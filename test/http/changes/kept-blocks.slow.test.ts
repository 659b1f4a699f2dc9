/** Kept digests: which answers store them, which changes outdate them, and which rows are then read again. */
import { createHash } from 'node:crypto'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { createPool } from '../../../src/db/pool.ts'
import { keepBlocks } from '../../../src/exports/blocks/kept-blocks.sql.ts'
import { wholeFolder } from '../../../src/exports/selection.ts'
import { type Download, download, madUrl, movementsUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { addLargeExercice, largeExercice } from '../../support/ledgers/large-exercice.ts'
import { type BlockItem, plainBlocks, plainDigest } from '../../support/ledgers/plain-blocks.ts'
import { credentials, folders } from '../../support/ledgers/tenants.ts'
import { startTestService } from '../../support/service.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'
import { until } from '../../support/until.ts'

const stage = forTests(setExportStage)

/** The id of the first entry. The exercice has twelve blocks of 100 entries with ten movements each. */
const firstEntry = 1_000_000

beforeAll(async () => {
  await addLargeExercice(stage.staff.client, 12_000)
})

beforeEach(() => sql('delete from grandlivre.movement_blocks'))

type Query = Record<string, string>

const large = { idExercice: largeExercice }
const year = { idExercice: '12' }

async function sql(text: string, values: unknown[] = []) {
  return (await stage.staff.client.query(text, values)).rows
}

const change = (text: string) => sql(`set search_path = grandlivre; ${text}`)
const ofFolder = 'schema_id = 100 and folder_id = 111'

interface Service {
  url: string
}

function blocksOf(query: Query, caller = stage.company, { url }: Service = stage.service): Promise<Download> {
  return download(madUrl(url, 'movements/blocks', query), caller)
}

function movementsOf(
  query: Query,
  headers: Record<string, string> = {},
  caller = stage.company,
  { url }: Service = stage.service,
): Promise<Download> {
  return download(movementsUrl(url, query), { ...caller, Accept: 'application/x-ndjson', ...headers })
}

function expectDigests(blocks: Download, copy: Download): void {
  expect([blocks.status, blocks.headers['x-ledger-cursor']]).toEqual([200, copy.headers['x-ledger-cursor']])
  expect(blocks.json).toEqual(plainBlocks(copy.text, blocks.json))
  expect(blocks.headers['x-ledger-digest']).toBe(plainDigest(blocks.json))
}

interface Kept {
  cursor: string
  rows: number[]
}

async function kept(exercice = largeExercice, folder = '111'): Promise<Kept | undefined> {
  const [row] = await sql(
    'select cursor, rows from grandlivre.movement_blocks where exercice_id = $1 and folder_id = $2',
    [exercice, folder],
  )
  return row
}

/** Digests are stored once the answer has ended. */
async function keptAt({ headers }: Download, exercice = largeExercice): Promise<Kept> {
  await until(async () => (await kept(exercice))?.cursor === headers['x-ledger-cursor'])
  return (await kept(exercice))!
}

/** Replaces the digest of a kept block. An answer contains the forged one only if the lines were not rendered again. */
function forge(place: number) {
  return sql(
    `update grandlivre.movement_blocks
     set digests = overlay(digests placing sha256('${forgedText}') from ${(place - 1) * 32 + 1} for 32)
     where exercice_id = ${largeExercice}`,
  )
}

const forgedText = 'forged'
const forged = createHash('sha256').update(forgedText).digest('hex')

const sha256s = ({ json }: Download): string[] => json.map(({ sha256 }: BlockItem) => sha256)
const forgedPlaces = (blocks: Download) =>
  sha256s(blocks).flatMap((sha256, i) => (sha256 === forged ? [i + 1] : []))

test('only blocks with changed entries are rendered again, by the route of blocks and by exports', async () => {
  const before = await blocksOf(large)
  await keptAt(before)
  for (const place of [2, 5, 9]) await forge(place)
  expect(forgedPlaces(await blocksOf(large))).toEqual([2, 5, 9])

  await change(`update entries set comment = 'x' where ${ofFolder} and id = ${firstEntry + 150}`)
  const after = await blocksOf(large)
  const changed = sha256s(after).flatMap((sha256, i) => (sha256 === sha256s(before)[i] ? [] : [i + 1]))
  expect(changed).toEqual([2, 5, 9])
  expect(forgedPlaces(after)).toEqual([5, 9])
  await keptAt(after)

  await change(`update entries set comment = 'y' where ${ofFolder} and id = ${firstEntry + 450}`)
  const copy = await movementsOf(large)
  await keptAt(copy)
  const last = await blocksOf(large)
  expect(forgedPlaces(last)).toEqual([9])
  expect(plainBlocks(copy.text, last.json).map(({ sha256 }, i) => sha256 === sha256s(last)[i])).toEqual(
    last.json.map((_: BlockItem, i: number) => i + 1 !== 9),
  )
})

test('movements and entries of unchanged blocks are not read again', async () => {
  await keptAt(await blocksOf(large))
  await change(`update entries set comment = 'read' where ${ofFolder} and id = ${firstEntry + 250}`)
  // Only the third block, which has changed, may be read.
  const readable = (id: string) =>
    `case when ${id} between ${firstEntry + 200} and ${firstEntry + 299} then true else refuse_reading() end`
  await change(`create function refuse_reading() returns boolean language plpgsql
      as 'begin raise exception ''a row of an unchanged block is read''; end';
    create policy changed on movements as restrictive to grandlivre_service using (${readable('entry_id')});
    create policy changed on entries as restrictive to grandlivre_service using (${readable('id')})`)
  try {
    expect((await movementsOf(large)).status).toBe(500)
    const blocks = await blocksOf(large)
    expect([blocks.status, blocks.json.length]).toEqual([200, 12])
    await keptAt(blocks)
  } finally {
    await change('drop function refuse_reading cascade')
  }
  expectDigests(await blocksOf(large), await movementsOf(large))
})

test('if the ledger has not changed, the answer reads no movement and uses no thread', async () => {
  const copy = await movementsOf(large)
  await keptAt(copy)
  await change('revoke select on movements, entries from grandlivre_service')
  try {
    expectDigests(await blocksOf(large), copy)
  } finally {
    await change('grant select on movements, entries to grandlivre_service')
  }
})

test('only a full export of an exercice in NDJSON keeps its digests, in any encoding', async () => {
  for (const encoding of ['identity', 'gzip', 'zstd']) {
    await sql('delete from grandlivre.movement_blocks')
    const { rows } = await keptAt(await movementsOf(large, { 'Accept-Encoding': encoding }))
    expect(rows).toEqual(Array(12).fill(1000))
  }
  const first = await keptAt(await movementsOf(large))
  await change(`update entries set comment = 'z' where ${ofFolder} and id = ${firstEntry}`)
  await movementsOf(large, { Accept: 'application/json' })
  const parts = [
    { ...large, draft: '1' },
    { ...large, after: String(firstEntry) },
    { ...large, entries: `${firstEntry}-${firstEntry + 10}` },
    { ...large, since: first.cursor },
    { ...large, lettering: 'none' },
    { ...large, classAccount: '4' },
    { startDate: '2020-01-01', endDate: '2020-12-31' },
  ]
  for (const query of parts) expect((await movementsOf(query)).status).toBe(200)
  for (const query of [
    { ...large, lettering: 'none' },
    { ...large, draft: '1' },
  ])
    expect((await blocksOf(query)).status).toBe(200)
  // Statements of one connection end in order, so digests of the answers before this one would be stored by then.
  await keptAt(await movementsOf(year), '12')
  expect(await sql('select exercice_id, cursor from grandlivre.movement_blocks order by 1')).toEqual([
    { exercice_id: '12', cursor: expect.any(String) },
    { exercice_id: largeExercice, cursor: first.cursor },
  ])
})

test('simultaneous requests on a changing ledger all give digests that match their cursor', async () => {
  const copies = new Map<unknown, Download>()
  const answers: Download[] = []
  const pull = async (encoding: string) => {
    const [blocks, copy] = await Promise.all([
      blocksOf(large),
      movementsOf(large, { 'Accept-Encoding': encoding }),
    ])
    answers.push(blocks)
    copies.set(copy.headers['x-ledger-cursor'], copy)
  }
  for (let round = 0; round < 3; round++) {
    const changing = change(
      `update entries set comment = '${round}' where ${ofFolder} and id % 150 = ${round} and exercice_id = 99`,
    )
    await Promise.all([...['identity', 'zstd', 'gzip'].map(pull), changing])
    await pull('identity')
  }
  const compared = answers.filter(({ headers }) => copies.has(headers['x-ledger-cursor']))
  for (const blocks of compared) expectDigests(blocks, copies.get(blocks.headers['x-ledger-cursor'])!)
  // Each of the three rounds ends with an answer and a copy of the same state.
  expect(compared.length).toBeGreaterThanOrEqual(3)
})

test('digests of another rendering are ignored and replaced', async () => {
  const own = await blocksOf(large)
  await keptAt(own)
  const other = await startTestService(stage.database, { timeZone: 'Asia/Tokyo' })
  try {
    const { headers } = await blocksOf(large, stage.company, other)
    expect(headers['x-ledger-cursor']).not.toBe(own.headers['x-ledger-cursor'])
    const copy = await movementsOf(large, {}, stage.company, other)
    await keptAt(copy)
    await forge(4)
    const again = await blocksOf(large)
    expect(sha256s(again)).toEqual(sha256s(own))
    await keptAt(again)
  } finally {
    await other.stop()
  }
})

test('digests are ignored if the log of changes no longer reaches back to them', async () => {
  await keptAt(await blocksOf(large))
  await forge(3)
  await change(`insert into ledger_changes (schema_id, folder_id, version, kind, ids)
    values (100, 111, next_ledger_version(100, 111), 'forgotten', '{}')`)
  const copy = await movementsOf(large)
  const after = await blocksOf(large)
  expectDigests(after, copy)
  await keptAt(after)
})

test('the digests of an earlier state do not overwrite those of a later one', async () => {
  const pool = createPool(stage.database.serviceUrl, { max: 1, applicationName: 'test' })
  try {
    const selection = {
      ...wholeFolder(folders.first, 'Europe/Paris'),
      draft: false,
      exerciceId: largeExercice,
    }
    const earlier = await blocksOf(large)
    await keptAt(earlier)
    await change(`update entries set comment = 'later' where ${ofFolder} and id = ${firstEntry}`)
    const later = await blocksOf(large)
    await keptAt(later)
    const nothing = { blocks: [{ first: 0, rows: 0, sha256: forged }], tables: undefined }
    const before = await kept()
    for (const cursor of [
      earlier.headers,
      later.headers,
      { 'x-ledger-cursor': '1.1.abcdefgh.abcdefghijklmnopqrstuv' },
    ]) {
      await keepBlocks(pool, selection, String(cursor['x-ledger-cursor']), nothing)
      expect(await kept()).toEqual(before)
    }
    await sql('delete from grandlivre.movement_blocks')
    await keepBlocks(pool, selection, String(later.headers['x-ledger-cursor']), nothing)
    expect(await kept()).toMatchObject({ rows: [0] })
  } finally {
    await pool.end()
  }
})

test("digests of each tenant's folders are kept apart", async () => {
  const secret = await stage.staff.thirdParty('BLOCKS-STRANGER')
  const stranger = credentials(await stage.staff.token('BLOCKS-STRANGER', 'api', folders.otherTenant), secret)
  await keptAt(await movementsOf(year), '12')
  expect((await blocksOf(large, stranger)).status).toBe(404)
  const copy = await movementsOf(year, {}, stranger)
  expectDigests(await blocksOf(year, stranger), copy)
  await until(async () => (await kept('12', folders.otherTenant.folderId)) !== undefined)
  expectDigests(await blocksOf(year, stranger), copy)
  expectDigests(await blocksOf(year), await movementsOf(year))
})

test('an answer succeeds even if its digests cannot be stored', async () => {
  await change('revoke insert on movement_blocks from grandlivre_service')
  try {
    const copy = await movementsOf(large)
    expect(copy.trailers['x-content-sha256']).toBe(copy.sha256)
    expectDigests(await blocksOf(large), copy)
    await until(() => stage.service.lines.filter((line) => line.includes('"blocks.notKept"')).length >= 2)
  } finally {
    await change('grant insert on movement_blocks to grandlivre_service')
  }
})
