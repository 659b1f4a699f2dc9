/**
 * Two promises of docs/guides/whole-firm.md as properties. Whatever happens to two firms, an updated copy has exactly
 * the rows of a fresh copy, and the digests of the service. Whatever somebody does to a copy, `verify` finds it, and
 * repairs only that.
 *
 * `npm run test:slow` runs a few histories and tamperings; `npm run long -- firms` compares 2,000 pairs of copies and
 * tampers 500 times. A failure shows its history and seed, and FIRM_SEED repeats the run. Histories are not shortened,
 * because each starts from the ledgers that the previous history left.
 */
import { createHash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { createFolder } from '../../../../src/ledger/tenants.sql.ts'
import { carryOut, type Transaction, transaction } from '../../../../test/support/changes/random-changes.ts'
import { fillRandomLedger } from '../../../../test/support/changes/random-ledger.ts'
import { forTests } from '../../../../test/support/for-tests.ts'
import { createTenants, credentials, folders } from '../../../../test/support/ledgers/tenants.ts'
import { createTestDatabase } from '../../../../test/support/servers/database.ts'
import { startTestService } from '../../../../test/support/service.ts'
import type { LedgerTableName } from '../../../contract/src/ledger-tables.ts'
import { type Copy, openCopy, type Run, type SyncEvent, syncCopy, verifyCopy } from '../../src/sync/sync.ts'
import { libraryOf } from '../support/client/library.ts'
import { setCopyPlaces } from '../support/sync/copies.ts'
import { linesIn, tableNames } from '../support/sync/rows.ts'

const pairs = Number(process.env['FIRM_PAIRS'] ?? 3)
const tamperings = Number(process.env['FIRM_TAMPERINGS'] ?? 10)
const seed = process.env['FIRM_SEED'] === undefined ? {} : { seed: Number(process.env['FIRM_SEED']) }
const foldersEach = pairs > 100 ? 10 : 3
/** Pairs of copies that one history compares. */
const momentsEach = 3

const firms = [folders.first.firmId, folders.otherFirm.firmId] as const
const { schemaId } = folders.first

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))
const service = forTests(() =>
  startTestService(database, { rateLimit: { requests: 1_000_000, windowMs: 10_000, concurrent: 200 } }),
)
const places = forTests(setCopyPlaces)
let thirdPartyId: string
const accesses: Record<string, string>[] = []
const ids: string[] = []

beforeAll(async () => {
  const secret = await staff.thirdParty('ONE')
  for (const firmId of firms)
    accesses.push(credentials(await staff.token('ONE', 'firm', { schemaId, firmId, folderId: null }), secret))
  thirdPartyId = await staff.thirdPartyId('ONE')
  for (let number = 0; number < 2 * foldersEach; number += 1) await addFolder(firms[number % 2]!)
})

async function addFolder(firmId: string): Promise<void> {
  const id = String(1_000 + ids.length)
  ids.push(id)
  await createFolder(staff.client, { schemaId, firmId, id, name: `Folder ${id}` })
  await fillRandomLedger(staff.client, { schemaId, folderId: id, thirdPartyId })
}

const sql = (text: string) => staff.client.query(`set search_path = grandlivre; ${text}`)
const idOf = (place: number) => ids[place % ids.length]!

type Event = {
  what: 'edit' | 'rename' | 'move' | 'come' | 'go' | 'compact' | 'epoch'
  place: number
  seed: number
  edit: Transaction
}

/** Carries out an event. */
async function happen({ what, place, seed: of, edit }: Event): Promise<void> {
  const id = idOf(place)
  switch (what) {
    case 'edit':
      return carryOut(staff.client, { schemaId, folderId: id, thirdPartyId }, edit)
    case 'rename':
      return void (await sql(`update folders set name = 'N ${of}' where id = ${id}`))
    case 'move':
      return void (await sql(`update folders set firm_id = ${firms[of % 2]} where id = ${id}`))
    case 'come':
    case 'go':
      // Deletes the empty folder of an earlier event. If the event is `come`, a new folder takes its place.
      await sql(`delete from folders where id = 999`)
      if (what === 'go') return
      return createFolder(staff.client, { schemaId, firmId: firms[of % 2]!, id: '999', name: `New ${of}` })
    case 'epoch':
      return void (await sql('select begin_epoch(true)'))
    case 'compact':
      return void (await sql(`select compact_ledger_changes(now() + interval '1 day')`))
  }
}

const event: fc.Arbitrary<Event> = fc.record({
  what: fc.constantFrom<Event['what']>(
    'edit',
    'edit',
    'edit',
    'edit',
    'edit',
    'rename',
    'move',
    'come',
    'go',
    'compact',
    'epoch',
  ),
  place: fc.nat({ max: 100 }),
  seed: fc.nat({ max: 1_000_000 }),
  edit: transaction,
})

const openNew = (): Promise<Copy> => openCopy(places.newAddress('SQLite'))

/** Runs for both firms, which share the copy. */
function runsOf(copy: Copy, onEvent?: (event: SyncEvent) => void): Run[] {
  return accesses.map((headers) => ({ copy, ledger: libraryOf(headers, service.url), onEvent }))
}

async function bring(copy: Copy): Promise<void> {
  for (const run of runsOf(copy)) {
    expect((await syncCopy(run)).failed).toEqual([])
    run.ledger.close()
  }
}

/** SHA-256 of each table of each folder that is not gone. */
async function digestsOf(copy: Copy): Promise<Record<string, string>> {
  const digests: Record<string, string> = {}
  for (const { society, gone_at } of await copy.folders()) {
    if (gone_at !== null) continue
    for (const table of tableNames) {
      const lines = await linesIn(copy, society, table)
      digests[`${society} ${table}`] = createHash('sha256').update(lines).digest('hex')
    }
  }
  return digests
}

test('an updated copy equals a fresh copy, and its digests equal those of the service', {
  timeout: 60_000 + pairs * 10_000,
}, async () => {
  const history = fc.array(fc.array(event, { maxLength: 6 }), {
    minLength: momentsEach,
    maxLength: momentsEach,
  })
  await fc.assert(
    fc.asyncProperty(history, async (moments) => {
      const copy = await openNew()
      await bring(copy)
      for (const events of moments) {
        for (const each of events) await happen(each)
        await bring(copy)
        const fresh = await openNew()
        await bring(fresh)
        expect(await digestsOf(copy)).toEqual(await digestsOf(fresh))
        await fresh.close()
      }
      for (const run of runsOf(copy)) {
        const { differed, unproven } = await verifyCopy(run, { repair: false })
        const gone = (await copy.folders())
          .filter(({ gone_at }) => gone_at !== null)
          .map(({ society }) => society)
        expect([differed, unproven.filter((society) => !gone.includes(society))]).toEqual([[], []])
        run.ledger.close()
      }
      await copy.close()
    }),
    { numRuns: Math.ceil(pairs / momentsEach), endOnFailure: true, ...seed },
  )
})

type Tampering = {
  table: LedgerTableName
  kind: 'cell' | 'delete' | 'add' | 'move'
  row: number
  column: number
  value: string
}

const tampering: fc.Arbitrary<Tampering> = fc.record({
  table: fc.constantFrom(...tableNames.filter((name) => name !== 'folders'), 'movements', 'movements'),
  kind: fc.constantFrom<Tampering['kind']>('cell', 'cell', 'cell', 'delete', 'add', 'move'),
  row: fc.nat({ max: 10_000 }),
  column: fc.nat({ max: 100 }),
  value: fc.constantFrom(' ', 'x', '\t', '\\N', '0', '1000000', 'é'),
})

/** @returns whether a row was changed: a value that a column refuses, or has already, changes nothing */
function tamper(database: DatabaseSync, { table, kind, row, column, value }: Tampering): boolean {
  const rows = database.prepare(`select count(*) as rows from ${table}`).get()!['rows'] as number
  if (rows === 0) return false
  const stored = database
    .prepare(`select name, type, pk from pragma_table_xinfo('${table}') where hidden = 0 order by cid`)
    .all() as { name: string; type: string; pk: number }[]
  const keys = stored.filter(({ pk }) => pk > 0).map(({ name }) => name)
  const one = `(${keys}) = (select ${keys} from ${table} limit 1 offset ${row % rows})`
  const data = stored.filter(({ pk }) => pk === 0)
  const { name, type } = data[column % data.length]!
  const quoted = `'${value.replaceAll("'", "''")}'`
  const statements = {
    cell:
      type === 'TEXT'
        ? `update ${table} set ${name} = coalesce(${name}, '') || ${quoted} where ${one}`
        : `update ${table} set ${name} = coalesce(${name}, 0) + 1 where ${one}`,
    delete: `delete from ${table} where ${one}`,
    add: `insert into ${table} (${stored.map((each) => each.name)}) select ${stored.map((each) =>
      each.name === keys.at(-1) ? `${each.name} + 900000000` : each.name,
    )} from ${table} where ${one}`,
    move: `update ${table} set society_id = (select min(society_id) from folders f where f.society_id <> ${table}.society_id
      and not exists (select 1 from ${table} o where o.society_id = f.society_id
        and (${keys.map((key) => `o.${key}`)}) = (${keys.map((key) => (key === 'society_id' ? 'f.society_id' : `${table}.${key}`))}))) where ${one}`,
  }
  try {
    return database.prepare(statements[kind]).run().changes > 0
  } catch (error) {
    // A constraint refused the change, or there was no folder to move the row to.
    if (/constraint|datatype|malformed JSON/.test((error as Error).message)) return false
    throw error
  }
}

test('verify finds and repairs any change to a row', {
  timeout: 60_000 + tamperings * 5_000,
}, async () => {
  const copy = await openNew()
  await bring(copy)
  const truth = await digestsOf(copy)
  let done = 0
  await fc.assert(
    fc.asyncProperty(fc.array(tampering, { minLength: 1, maxLength: 2 }), async (all) => {
      const other = new DatabaseSync(copy.name)
      const changed = all.filter((each) => tamper(other, each)).length
      other.close()
      const isChanged = JSON.stringify(await digestsOf(copy)) !== JSON.stringify(truth)
      expect(isChanged).toBe(changed > 0)
      done += changed
      const differed: string[] = []
      for (const run of runsOf(copy)) {
        differed.push(...(await verifyCopy(run)).differed)
        run.ledger.close()
      }
      expect(differed.length > 0).toBe(changed > 0)
      expect(await digestsOf(copy)).toEqual(truth)
    }),
    { numRuns: tamperings, endOnFailure: true, ...seed },
  )
  expect(done).toBeGreaterThan(tamperings / 4)
  await copy.close()
})
