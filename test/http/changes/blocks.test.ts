/** Digests of movements in blocks, through the whole service, against those that a client computes from its copy. */
import { beforeAll, describe, expect, test } from 'vitest'
import { type Download, download, madUrl, movementsUrl } from '../../support/download.ts'
import { forTests } from '../../support/for-tests.ts'
import { addLargeExercice, largeExercice } from '../../support/ledgers/large-exercice.ts'
import { type BlockItem, checkBounds, plainBlocks, plainDigest } from '../../support/ledgers/plain-blocks.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

beforeAll(async () => {
  await addLargeExercice(stage.staff.client, 12_000)
})

type Query = Record<string, string>
type Headers = Record<string, string>

const ndjson = { Accept: 'application/x-ndjson' }
const year = { idExercice: '12' }
const large = { idExercice: largeExercice }
const blocksUrl = (query: Query) => madUrl(stage.service.url, 'movements/blocks', query)

function ask(query: Query, headers: Headers = {}, method = 'GET'): Promise<Download> {
  return download(blocksUrl(query), { ...stage.company, ...headers }, method)
}

/** All movements, in NDJSON. */
function copyOf(query: Query): Promise<Download> {
  return download(movementsUrl(stage.service.url, query), { ...stage.company, ...ndjson })
}

const change = (sql: string) => stage.staff.client.query(`set search_path = grandlivre; ${sql}`)
const ofFolder = 'schema_id = 100 and folder_id = 111'

/** Expects the digests of a copy at the same cursor. */
async function expectDigests(query: Query): Promise<BlockItem[]> {
  const answer = await ask(query)
  const copy = await copyOf(query)
  expect([answer.status, answer.headers['x-ledger-cursor']]).toEqual([200, copy.headers['x-ledger-cursor']])
  const blocks: BlockItem[] = answer.json
  checkBounds(blocks)
  expect(blocks).toEqual(plainBlocks(copy.text, blocks))
  expect(answer.headers['x-ledger-digest']).toBe(plainDigest(blocks))
  expect(answer.trailers).toEqual({
    'x-row-count': String(blocks.length),
    'x-content-sha256': answer.sha256,
  })
  return blocks
}

const sum = (blocks: BlockItem[]) => blocks.reduce((rows, block) => rows + block.rows, 0)

/** Exercice 12 is from 2024-07-01 to 2025-06-30. */
const selections: Query[] = [
  year,
  { idExercice: '11' },
  large,
  { ...year, draft: '1' },
  { ...year, draft: '0' },
  { ...year, source: 'API' },
  { ...year, classAccount: '60,401' },
  { ...large, classAccount: '4' },
  { ...year, lettering: 'partial' },
  { ...large, lettering: 'none' },
  { startDate: '2024-01-01', endDate: '2024-12-31' },
  { startDate: '2020-01-01', endDate: '2020-12-31', dateFilter: 'accounting' },
  { startDate: '2024-09-01', endDate: '2025-01-31', dateFilter: 'platform', source: 'E' },
]

test.each(selections)('the digests of %o are those of the lines in the answer', async (query) => {
  await expectDigests(query)
  // The second answer may have kept digests. They are the same.
  await expectDigests(query)
})

test('a year is cut into blocks of about a thousand movements', async () => {
  const blocks = await expectDigests(large)
  expect(blocks.map(({ rows }) => rows)).toEqual(Array(12).fill(1000))
  expect(sum(await expectDigests(year))).toBeGreaterThan(50)
})

test('an empty selection has one block without lines', async () => {
  const blocks = await expectDigests({ startDate: '1990-01-01', endDate: '1990-12-31' })
  expect(blocks).toMatchObject([{ from: '0', to: '9007199254740991', rows: 0 }])
})

test.each(['after', 'entries', 'since', 'wait'])(
  'the parameter %s is refused, because it selects a part',
  async (parameter) => {
    const { status, json } = await ask({ ...year, [parameter]: '1' })
    expect([status, json.error.code]).toEqual([400, 'ERR-VALIDATION'])
    expect(json.error.details.issues).toEqual([{ parameter, message: 'is not a parameter of this route' }])
  },
)

describe('ETags', () => {
  test.each([
    ['kept', large],
    ['computed', { ...large, lettering: 'none' }],
  ])('name the state and the encoding of digests that are %s', async (_, query: Query) => {
    await ask(query)
    await expectKept()
    const first = await ask(query)
    const { etag } = first.headers
    const held = await ask(query, { 'If-None-Match': etag! })
    expect([held.status, held.headers.etag, held.headers['x-ledger-cursor']]).toEqual([
      304,
      etag,
      first.headers['x-ledger-cursor'],
    ])
    if (query === large) expect(held.headers['x-ledger-digest']).toBe(first.headers['x-ledger-digest'])
    const compressed = (await ask(query, { 'Accept-Encoding': 'zstd' })).headers.etag!
    expect(compressed).not.toBe(etag)
    expect((await ask(query, { 'If-Match': compressed })).status).toBe(200)
    await change(`update entries set comment = comment where ${ofFolder} and id = 39`)
    const next = await ask(query, { 'If-None-Match': etag! })
    expect(next.status).toBe(200)
    expect(next.headers.etag).not.toBe(etag)
    expect(next.headers['x-ledger-digest']).toBe(first.headers['x-ledger-digest'])
    expect((await ask(query, { 'If-Match': etag! })).status).toBe(412)
  })

  test('differ if the blocks have other bounds', async () => {
    await ask(large)
    await expectKept()
    const { etag } = (await ask(large)).headers
    await change(
      `update movement_blocks set first_ids[2] = first_ids[2] - 1 where exercice_id = ${largeExercice}`,
    )
    expect((await ask(large, { 'If-None-Match': etag! })).status).toBe(200)
    await change(`delete from movement_blocks`)
  })

  test('are sent to HEAD if they are known without reading movements', async () => {
    await change('delete from movement_blocks')
    const unknown = await ask(large, {}, 'HEAD')
    expect([unknown.status, unknown.bytes.length, unknown.headers.etag]).toEqual([200, 0, undefined])
    const { headers } = await ask(large)
    await expectKept()
    const known = await ask(large, {}, 'HEAD')
    expect([known.status, known.bytes.length]).toEqual([200, 0])
    for (const name of ['etag', 'x-ledger-digest', 'x-ledger-cursor', 'content-type'])
      expect(known.headers[name]).toBe(headers[name])
  })
})

/** Digests are stored once the answer has ended. */
async function expectKept(): Promise<void> {
  await expect
    .poll(async () => {
      const { rows } = await stage.staff.client.query(
        `select b.version = f.ledger_version as current
         from grandlivre.movement_blocks b join grandlivre.folders f on f.id = b.folder_id
         where b.folder_id = 111 and b.exercice_id = ${largeExercice}`,
      )
      return rows
    })
    .toEqual([{ current: true }])
}
