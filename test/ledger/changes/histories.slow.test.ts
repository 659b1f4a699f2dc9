/**
 * The promise of docs/spec/changes.md as a property: for any two moments of any history, a copy of the first, changed by
 * the answer to `since`, is byte for byte the second, and the digests of its blocks are those of the service. Through the
 * whole service, beside imports into the same schema.
 *
 * `npm run test:slow` compares 100 pairs of moments; `npm run long -- histories` 10,000 over 500 histories (HISTORIES).
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createOwnerPool } from '../../../src/db/pool.ts'
import { importFec } from '../../../src/ledger/fec/import-fec.ts'
import { createFolder } from '../../../src/ledger/tenants.sql.ts'
import { applyDelta, readDelta } from '../../support/changes/apply-delta.ts'
import { type LedgerDigests, plainLedgerBlocks } from '../../support/changes/ledger-digests.ts'
import { readLedgers } from '../../support/changes/ledger-stream.ts'
import { shrinking, tries } from '../../support/changes/properties.ts'
import { carryOut, type Transaction, transaction } from '../../support/changes/random-changes.ts'
import { fillRandomLedger, type RandomLedger } from '../../support/changes/random-ledger.ts'
import { forTests } from '../../support/for-tests.ts'
import { type FecRow, fecFile, ledger } from '../../support/ledgers/fec-file.ts'
import { type BlockItem, checkBounds, plainBlocks, plainDigest } from '../../support/ledgers/plain-blocks.ts'
import { createTenants, credentials, folders } from '../../support/ledgers/tenants.ts'
import { createTestDatabase } from '../../support/servers/database.ts'
import { startTestService } from '../../support/service.ts'

const histories = Number(process.env['HISTORIES'] ?? 2)
/** The folder into which others import meanwhile. */
const importedId = '9999'
/** Answers are partial if they have some ranges but not all entries, and unchanged if they have no range. */
const tally = { pairs: 0, partial: 0, unchanged: 0 }

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))
const pool = forTests(() => createOwnerPool(database.ownerUrl, { max: 4, applicationName: 'histories' }))
const service = forTests(() => startTestService(database))
let signed: Record<string, string>
let thirdPartyId: string
let fecFolder: string

beforeAll(async () => {
  const secret = await staff.thirdParty('ONE')
  signed = credentials(await staff.token('ONE', 'firm', folders.first), secret)
  thirdPartyId = await staff.thirdPartyId('ONE')
  const { schemaId, firmId } = folders.first
  await createFolder(staff.client, { schemaId, firmId, id: importedId, name: 'Imported' })
  // Imports take ids after those of random ledgers.
  await staff.client.query(`select setval('grandlivre.ids', 50000000)`)
  fecFolder = await mkdtemp(join(tmpdir(), 'grandlivre-histories-'))
})

afterAll(() => rm(fecFolder, { recursive: true }))

/** Thrown if a delta did not make a copy equal to the ledger. */
class NotTheLedger extends Error {}

/** A state of the ledger as a client pulled it: its cursor, and the lines of each selection. */
interface Moment {
  cursor: string
  copies: string[]
}

async function get(
  path: string,
  folderId: string,
): Promise<{ body: string; cursor: string; headers: Headers }> {
  const headers = { ...signed, 'society-id': folderId, Accept: 'application/x-ndjson' }
  const response = await fetch(`${service.url}/api/v1/mad/${path}&version=1.0.0`, { headers })
  const body = await response.text()
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${body}`)
  return { body, cursor: response.headers.get('x-ledger-cursor')!, headers: response.headers }
}

const selection = fc
  .constantFrom(
    'idExercice=11',
    'idExercice=12',
    // Over two exercices, and over the imported one.
    'startDate=2023-07-19&endDate=2024-06-30',
    'startDate=2022-07-01&endDate=2023-06-15',
    'startDate=2023-05-01&endDate=2023-12-31&dateFilter=accounting',
    'startDate=2024-02-01&endDate=2024-02-20&dateFilter=platform',
  )
  .chain((time) =>
    fc.oneof(
      {
        weight: 2,
        arbitrary: fc
          .constantFrom(
            ...[
              '',
              '',
              '&classAccount=401,6',
              '&lettering=partial',
              '&lettering=none',
              '&source=API',
              '&draft',
            ],
          )
          .map((filter) => `movements?${time}${filter}`),
      },
      {
        weight: 1,
        arbitrary: fc
          .constantFrom('', '', '&journalIds=31,33', '&source=E', '&draft')
          .map((filter) => `entries?${time}${filter}`),
      },
    ),
  )

/** Another file for the year 2022. In it, one line in six has another text. */
interface Import {
  differs: number
  text: string
}

interface History {
  selections: string[]
  /** The changes before each moment after the first. */
  moments: (Transaction | Import)[][]
}

const importOfYear: fc.Arbitrary<Import> = fc.record({
  differs: fc.nat({ max: 5 }),
  text: fc.nat().map((number) => `Corrigé ${number}`),
})
const history: fc.Arbitrary<History> = fc.record({
  selections: fc.array(selection, { minLength: 2, maxLength: 2 }),
  moments: fc.array(
    fc.array(fc.oneof({ weight: 9, arbitrary: transaction }, { weight: 1, arbitrary: importOfYear }), {
      maxLength: 3,
    }),
    { minLength: 7, maxLength: 7 },
  ),
})

/** Pulls every selection at one state; a change in between starts it again. */
async function pull(selections: string[], folderId: string): Promise<Moment> {
  for (;;) {
    const pulled = await Promise.all(selections.map((selection) => get(selection, folderId)))
    const cursors = new Set(pulled.map(({ cursor }) => cursor))
    if (cursors.size === 1) return { cursor: pulled[0]!.cursor, copies: pulled.map(({ body }) => body) }
  }
}

let lived = 0

/** Lives one history, and compares every pair of its moments. @throws if a copy is not the ledger */
async function live({ selections, moments }: History): Promise<void> {
  const { schemaId, firmId } = folders.first
  const folderId = String(10_000 + ++lived)
  const ledgerOf: RandomLedger = { schemaId, folderId, thirdPartyId }
  await createFolder(staff.client, { schemaId, firmId, id: folderId, name: `History ${lived}` })
  await fillRandomLedger(staff.client, ledgerOf)
  await using _ = importMeanwhile()
  const past = [await pull(selections, folderId)]
  for (const changes of moments) {
    for (const change of changes)
      if ('differs' in change) await replaceYear(folderId, change)
      else await carryOut(staff.client, ledgerOf, change)
    const now = await pull(selections, folderId)
    for (const [at, selection] of selections.entries())
      if (selection.startsWith('movements'))
        await compareBlocks(selection, folderId, now.cursor, now.copies[at]!)
    await compareLedger(folderId, now.cursor)
    for (const former of past)
      for (const [at, selection] of selections.entries()) {
        const { body: delta } = await get(`${selection}&since=${former.cursor}`, folderId)
        const { cursor, entries } = readDelta(delta)
        const asked = `${selection}, ${JSON.stringify(entries).slice(0, 200)}`
        expect(cursor, asked).toBe(now.cursor)
        if (applyDelta(former.copies[at]!, delta) !== now.copies[at]) throw new NotTheLedger(asked)
        tally.pairs++
        if (entries.length === 0) tally.unchanged++
        else if (entries[0]![1] !== '9007199254740991') tally.partial++
      }
    past.push(now)
  }
}

/** Compares the digests of the service's blocks with those of the client's copy. */
async function compareBlocks(
  selection: string,
  folderId: string,
  cursor: string,
  copy: string,
): Promise<void> {
  const path = selection.replace('movements?', 'movements/blocks?')
  const { body, headers } = await get(path, folderId)
  expect(headers.get('x-ledger-cursor'), path).toBe(cursor)
  const blocks: BlockItem[] = body
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
  checkBounds(blocks)
  if (!isDeepStrictEqual(blocks, plainBlocks(copy, blocks))) throw new NotTheLedger(`blocks of ${path}`)
  expect(plainDigest(blocks), path).toBe(headers.get('x-ledger-digest'))
}

/** Compares the digests of the whole ledger, kept ones among them, with those of its rows. */
async function compareLedger(folderId: string, cursor: string): Promise<void> {
  const headers = { ...signed, 'Content-Type': 'application/json' }
  const body = JSON.stringify({ ledgers: [{ society: folderId }] })
  const post = async (route: string) =>
    (
      await fetch(`${service.url}/api/v1/mad/ledgers/${route}?version=1.0.0`, {
        method: 'POST',
        headers,
        body,
      })
    ).text()
  // The digests are read first, because the stream also stores digests.
  const digests: LedgerDigests = JSON.parse(await post('blocks'))
  const [ledger] = readLedgers(await post('changes')).ledgers
  expect(digests.cursor).toBe(cursor)
  if (!isDeepStrictEqual(digests, plainLedgerBlocks(ledger!, digests)))
    throw new NotTheLedger(`the digests of folder ${folderId}`)
}

/** Imports the year 2022 into the folder, over what was imported before, with some lines that differ. */
async function replaceYear(folderId: string, { differs, text }: Import): Promise<void> {
  const before = (day = '') => day.replace(/^202[23]/, (year) => String(Number(year) - 1))
  const rows: FecRow[] = ledger.map((row, at) => ({
    ...row,
    EcritureDate: before(row['EcritureDate']),
    PieceDate: before(row['PieceDate']),
    DateLet: before(row['DateLet']),
    ValidDate: before(row['ValidDate']),
    ...(at % 6 === differs && { EcritureLib: text }),
  }))
  const file = join(await mkdtemp(join(fecFolder, 'file-')), '123456789FEC20221231.txt')
  await writeFile(file, fecFile(rows))
  await importFec(pool, { file, folderId, replace: true })
}

/** Imports into another folder of the schema. Ends with the import. */
function importMeanwhile(): AsyncDisposable {
  const importing = replaceYear(importedId, { differs: 0, text: 'Corrigé' })
  return { [Symbol.asyncDispose]: () => importing }
}

/** Rows of fewer ranges, so that small ledgers have coarsened ones. */
async function coarsenSooner(): Promise<() => Promise<void>> {
  const restoreLog = await redefine('advance_ledger_version', [[/>= 100\b/, '>= 5']])
  const restore = await redefine('coarsened', [
    [/\b1000\b/, '4'],
    [/\b100000\b/, '60'],
    [/\b1024\b/, '16'],
  ])
  return async () => {
    await restore()
    await restoreLog()
  }
}

/** Defines a function of the database again, with other text in its body. */
async function redefine(name: string, changes: [from: RegExp, to: string][]): Promise<() => Promise<void>> {
  const { rows } = await staff.client.query<{ text: string }>(
    'select pg_get_functiondef(oid) as text from pg_proc where proname = $1',
    [name],
  )
  const { text } = rows[0]!
  let changed = text
  for (const [from, to] of changes) {
    expect(changed, name).toMatch(from)
    changed = changed.replaceAll(new RegExp(from, 'g'), to)
  }
  await staff.client.query(changed)
  return async () => void (await staff.client.query(text))
}

test('applying the answer of `since` to a copy gives the ledger, for all pairs of moments', async () => {
  const property = fc.asyncProperty(history, shrinking(live))
  const half = Math.ceil(histories / 2)
  await fc.assert(property, tries(half))
  const restore = await coarsenSooner()
  try {
    await fc.assert(property, tries(histories - half, 1))
  } finally {
    await restore()
  }
  console.log(`${histories} histories: ${JSON.stringify(tally)}`)
  expect(tally.pairs).toBeGreaterThanOrEqual(20 * histories)
  // With fewer small answers this would prove little.
  expect(tally.partial).toBeGreaterThan(tally.pairs / 5)
}, 7_200_000)

async function withoutTrigger(): Promise<() => Promise<void>> {
  const set = async (state: string) =>
    void (await staff.client.query(`alter table grandlivre.movements ${state} trigger ledger_version_update`))
  await set('disable')
  return () => set('enable')
}

const logs = (from: RegExp, to: string) => () => redefine('advance_ledger_version', [[from, to]])

test.each<[string, () => Promise<() => Promise<void>>]>([
  [
    'loses an id of a range',
    logs(/coarsened\(ids\)/, 'ids - int8multirange(int8range(lower(ids), lower(ids) + 1))'),
  ],
  [
    'has a version out of order',
    logs(/folder\.folder_id, version, kind/, 'folder.folder_id, version - 1, kind'),
  ],
  ['ignores one table', withoutTrigger],
  [
    'has coarsened ranges that are one entry too short',
    () =>
      redefine('coarsened', [
        [/\b1000\b/, '4'],
        [/\(upper\(j\.j\) - 1\)/, '(upper(j.j) - 2)'],
      ]),
  ],
  ['does not expand a renaming', logs(/coarsened\(ids\)/, `case kind when 'entries' then ids else '{}' end`)],
])('the property test detects a log that %s', async (_, breakLog) => {
  const repair = await breakLog()
  try {
    const found = await fc.check(fc.asyncProperty(history, live), { ...tries(30), endOnFailure: true })
    expect(found.errorInstance).toBeInstanceOf(NotTheLedger)
  } finally {
    await repair()
  }
})
