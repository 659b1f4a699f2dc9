/** Fills a folder with a made-up ledger of any size: deterministic, balanced, and as untidy as real ones. */

import type { ClientBase } from 'pg'
import { createOwnerPool, inTransaction } from '../../../src/db/pool.ts'
import { entryTable } from '../../../src/formats/items/entry.ts'
import { movementTable } from '../../../src/formats/items/movement.ts'
import type { TableOf } from '../../../src/formats/items/table.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import { EntryNumbers } from '../../../src/ledger/entry-numbers.ts'
import { rememberLetterings } from '../../../src/ledger/events.sql.ts'
import type { IdSource } from '../../../src/ledger/ids.ts'
import { type Books, type BookTable, bookTables } from '../../../src/ledger/import/books.ts'
import { publishImport } from '../../../src/ledger/publish-import.ts'
import {
  createFirm,
  createFolder,
  createSchema,
  deleteLedger,
  exerciceIds,
  findFoldersByReference,
} from '../../../src/ledger/tenants.sql.ts'
import { buildChart, type Chart } from './made-up/chart.ts'
import { generateLedger } from './made-up/ledger.ts'
import type { DraftedEntry } from './made-up/lines.ts'
import { addressOf, siren } from './made-up/parties.ts'
import { Random } from './made-up/random.ts'
import words from './made-up/words.json' with { type: 'json' }
import { findOrCreateSender, lockReference, vacuumLedger } from './seed.sql.ts'
import { SeedLoading } from './seed-loading.ts'

export const movementsMin = 10
export const movementsMax = 5_000_000

/** More than the largest chart has, with its folder and exercices. */
const idsOfChart = 10_000

export interface SeedOptions {
  /** Exact number of movements, in two fiscal years: 99 in a hundred are in the later one. */
  movements: number
  /** The same seed gives the same rows apart from ids. Default 1. */
  seed?: number
  /** The later fiscal year, a calendar year. Default: the current one. */
  year?: number
  /** Reference of the folder. Default SEED. */
  reference?: string
  /** If the reference exists: empty that folder and fill it again; its id and tokens stay. Default: refuse. */
  replace?: boolean
  /** Called after each batch. */
  onProgress?: (movementsDone: number, movements: number) => void
  /** The last statements of the transaction: what else belongs to the seed. */
  record?: (client: ClientBase, imported: SeededFolder) => Promise<void>
  /** Called after the commit. The remaining steps make the first exports fast and may be interrupted without harm. */
  onLoaded?: (folder: SeededFolder) => void
}

export interface SeededFolder {
  schemaId: string
  firmId: string
  folderId: string
  /** The closed previous year, then the year with nearly all movements. Days are 'YYYY-MM-DD'. */
  exercices: { id: string; start: string; end: string }[]
  counts: { entries: number; movements: number; accounts: number }
  /** Bytes of rows sent to the database. */
  loadedBytes: number
}

/**
 * Creates a tenant with one firm and one folder and fills it, in one transaction.
 * @param ownerUrl an address of the database as the owner of its tables
 * @throws {Error} if the folder exists and `replace` is not set, or a number is out of range
 */
export async function seed(ownerUrl: string, options: SeedOptions): Promise<SeededFolder> {
  checkMovements(options.movements)
  const pool = createOwnerPool(ownerUrl, { max: 1, applicationName: 'grandlivre seed' })
  try {
    const folder = await inTransaction(pool, async (client) => {
      const seeded = await seedFolder(client, options)
      await options.record?.(client, seeded)
      return seeded
    })
    options.onLoaded?.(folder)
    await vacuumLedger(pool)
    return folder
  } finally {
    await pool.end()
  }
}

/** @throws {Error} if it is out of range */
export function checkMovements(movements: number): void {
  if (!Number.isSafeInteger(movements) || movements < movementsMin || movements > movementsMax)
    throw new Error(`The number of movements must be a whole number from ${movementsMin} to ${movementsMax}`)
}

async function seedFolder(client: ClientBase, options: SeedOptions): Promise<SeededFolder> {
  const {
    movements,
    seed = 1,
    year = new Date().getFullYear(),
    reference = 'SEED',
    replace = false,
    onProgress,
  } = options
  const random = new Random(seed)
  const loading = new SeedLoading(client, onProgress && ((done) => onProgress(done, movements)))
  const { ids } = loading
  await ids.reserve(idsOfChart)
  await lockReference(client, reference)
  const { firmId, deleted, ...key } = await findOrCreateFolder(client, ids, random, reference, replace)
  const thirdPartyId = await findOrCreateSender(client, ids.next())
  const filled = await addLedger(loading, key, random, { movements, year, thirdPartyId })
  await loading.load()
  const created = filled.exercices.map(({ id }) => id)
  const replaced = deleted !== undefined
  const events = { deleted: deleted ?? [], created, filled: created }
  await publishImport(client, { ...key, folderCreated: !replaced, replaced, ...events })
  return { ...key, firmId, ...filled, loadedBytes: loading.bytes }
}

/** Makes up the ledger of an empty folder. The last rows wait for `load`. */
export async function addLedger(
  loading: SeedLoading,
  key: FolderKey,
  random: Random,
  { movements, year, thirdPartyId }: { movements: number; year: number; thirdPartyId: string },
): Promise<Pick<SeededFolder, 'exercices' | 'counts'>> {
  await loading.ids.reserve(idsOfChart)
  const chart = buildChart(movements, random, () => loading.ids.next())
  const exercices = [year - 1, year].map((calendarYear) => ({
    id: loading.ids.next(),
    start: `${calendarYear}-01-01`,
    end: `${calendarYear}-12-31`,
  }))
  addChart(loading, key, chart, exercices)
  const ledger = generateLedger(chart, random, { movements, year, thirdPartyId })
  const counts = await addEntries(
    loading,
    key,
    ledger,
    (entryYear) => exercices[entryYear === year ? 1 : 0]!.id,
  )
  return { exercices, counts: { ...counts, accounts: chart.accounts.length } }
}

/** With its old exercices if its ledger is replaced. */
async function findOrCreateFolder(
  client: ClientBase,
  ids: IdSource,
  random: Random,
  reference: string,
  replace: boolean,
): Promise<FolderKey & { firmId: string; deleted?: string[] }> {
  // Drawn even if the folder exists, so that the numbers after it are the same in both cases.
  const siret = `${siren(random)}00018`
  const firmSiret = `${siren(random)}00026`
  const address = addressOf(random)
  const existing = await findFoldersByReference(client, reference)
  if (existing.length > 1)
    throw new Error(`${existing.length} folders have the reference ${reference}: choose another one`)
  const [folder] = existing
  if (folder !== undefined) {
    if (!replace)
      throw new Error(
        `The folder ${folder.id} has the reference ${reference} already: choose another, or replace its ledger with --replace`,
      )
    const key = { schemaId: folder.schemaId, folderId: folder.id }
    const deleted = await exerciceIds(client, key)
    await rememberLetterings(client, key, null)
    await deleteLedger(client, key)
    return { ...key, firmId: folder.firmId, deleted }
  }
  const [schemaId, firmId, folderId] = [ids.next(), ids.next(), ids.next()]
  await createSchema(client, { id: schemaId, name: `Cabinet ${reference}` })
  const name = 'Cabinet Lefèvre & Associés'
  await createFirm(client, { schemaId, id: firmId, name, siret: firmSiret })
  const filling = { ...words.folder, reference, siret, capital: 5_000_000n, address }
  await createFolder(client, { schemaId, id: folderId, firmId, ...filling })
  return { schemaId, firmId, folderId }
}

/** Adds everything that entries refer to. */
function addChart(
  loading: SeedLoading,
  key: FolderKey,
  chart: Chart,
  exercices: SeededFolder['exercices'],
): void {
  const [before, current] = exercices as [SeededFolder['exercices'][0], SeededFolder['exercices'][0]]
  const closed = {
    closedAt: `${current.start.slice(0, 4)}-03-31T16:45:00Z`,
    closedById: '7',
    closedByFirstName: 'Anaïs',
    closedByLastName: 'Lefèvre',
  }
  const row = ({ id, start, end }: typeof before) => ({ id, startDate: start, endDate: end })
  const books: Books = {
    ...chart,
    exercices: [
      { ...row(before), lettering: 'MONO', ...closed },
      { ...row(current), lettering: 'MULTI' },
    ],
  }
  for (const [name, table] of Object.entries<TableOf<Record<string, unknown>>>(bookTables as never)) {
    const writer = loading.writer(table)
    for (const row of books[name as BookTable]) writer.add({ ...key, ...row })
  }
}

/** Returns how many entries and movements there are. The last of them are not loaded yet. */
async function addEntries(
  loading: SeedLoading,
  key: FolderKey,
  ledger: Iterable<DraftedEntry & { year: number }>,
  exerciceIdOf: (year: number) => string,
): Promise<{ entries: number; movements: number }> {
  const entryWriter = loading.writer(entryTable)
  const movementWriter = loading.writer(movementTable)
  const added = { entries: 0, movements: 0 }
  const numbers = new EntryNumbers()
  const { ids } = loading
  await loading.reserve()
  for (const { lines, opens: _, year, ...entry } of ledger) {
    const exerciceId = exerciceIdOf(year)
    const entryId = ids.next()
    const number = numbers.next({ exerciceId, ...entry })
    entryWriter.add({ ...key, exerciceId, id: entryId, number, ...entry })
    for (const line of lines) movementWriter.add({ ...key, exerciceId, entryId, id: ids.next(), ...line })
    added.entries += 1
    added.movements += lines.length
    await loading.loadBatch()
  }
  return added
}
