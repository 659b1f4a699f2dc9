/**
 * Fills a folder, or a firm of many folders, with made-up ledgers of any size. They are deterministic, balanced, and as
 * untidy as real ones.
 */
import { strict as assert } from 'node:assert'
import type { ClientBase, Pool } from 'pg'
import { createOwnerPool, inTransaction } from '../../../src/db/pool.ts'
import { entryTable, movementTable } from '../../../src/formats/items/entry.ts'
import type { TableOf } from '../../../src/formats/items/table.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import { IdSource } from '../../../src/ledger/ids.ts'
import { entryNumbers } from '../../../src/ledger/import/entry-writer.ts'
import { type MasterRows, type MasterTable, masterTables } from '../../../src/ledger/import/master-data.ts'
import { analyzeWhileLoading, movementsBeforeAnalyze, TableWriter } from '../../../src/ledger/load.ts'
import { publishImport, rememberLetterings } from '../../../src/ledger/publish-import.sql.ts'
import {
  createFirm,
  createFolder,
  createSchema,
  deleteLedger,
  exerciceIds,
  findFoldersByReference,
} from '../../../src/ledger/tenants.sql.ts'
import { buildChart } from './made-up/chart.ts'
import { entryLinesMax, generateLedger } from './made-up/ledger.ts'
import { addressOf, siren } from './made-up/parties.ts'
import { Random } from './made-up/random.ts'
import words from './made-up/words.json' with { type: 'json' }
import { findOrCreateSender, lockReference, lookUpReferences, vacuumLedger } from './seed.sql.ts'

export const movementsMin = 10
export const movementsMax = 5_000_000
export const foldersMax = 10_000

/** More ids than the largest chart needs, together with its folder and exercices. */
const idsOfChart = 10_000

const movementsPerBatch = 10_000

/**
 * Most ids that a batch needs: one for each movement, one for each entry, which has at least two movements, and those
 * of one last entry.
 */
const idsPerBatch = movementsPerBatch * 1.5 + entryLinesMax + 1

interface LedgerOptions {
  /** Exact number of movements in a folder with two fiscal years. 99 in a hundred are in the later year. */
  movements: number
  /** The same seed gives the same rows, apart from ids. Default: 1. */
  seed?: number
  /** The later fiscal year, which is a calendar year. Default: the current one. */
  year?: number
  /** Reference of the folder. For a firm: the beginning of the references of all its folders. Default: SEED. */
  reference?: string
  /** Called after each batch. */
  onProgress?: ((movementsDone: number, movements: number) => void) | undefined
}

interface FolderOptions extends LedgerOptions {
  /**
   * Empties a folder that has the reference and fills it again; its id and tokens stay. Default: such a folder is
   * refused.
   */
  replace?: boolean
}

interface FirmOptions extends LedgerOptions {
  folders: number
  /** Number of the first folder, which becomes part of its name and reference. Default: 1. */
  first?: number
  /** The firm that gets the folders. Default: a new firm in a new schema. */
  firm?: { schemaId: string; firmId: string }
}

export type SeededFolder = Awaited<ReturnType<typeof seedFolder>>

export type SeededFirm = Awaited<ReturnType<typeof seedFirm>>

/**
 * Seeds a folder in one transaction, as seedFolder does, and makes its first exports fast.
 * @param ownerUrl address of the database for the owner of its tables
 * @param options.onLoaded called after the commit, before the statistics are updated
 */
export async function seed(
  ownerUrl: string,
  options: FolderOptions & { onLoaded?: (folder: SeededFolder) => void },
): Promise<SeededFolder> {
  return asOwner(ownerUrl, 'seed', async (pool) => {
    const folder = await inTransaction(pool, (client) => seedFolder(client, options))
    options.onLoaded?.(folder)
    await vacuumLedger(pool)
    return folder
  })
}

/**
 * Runs work on the database as the owner of its tables. @param name of the program, which the database shows for its
 * sessions
 */
export async function asOwner<Result>(
  ownerUrl: string,
  name: string,
  work: (pool: Pool) => Promise<Result>,
): Promise<Result> {
  const pool = createOwnerPool(ownerUrl, { max: 1, applicationName: `grandlivre ${name}` })
  try {
    return await work(pool)
  } finally {
    await pool.end()
  }
}

function checkMovements(movements: number): void {
  if (!Number.isSafeInteger(movements) || movements < movementsMin || movements > movementsMax)
    throw new Error(`The number of movements must be a whole number from ${movementsMin} to ${movementsMax}`)
}

/**
 * Fills a folder. If no folder has the reference, it is created in a new firm of a new tenant.
 * @throws {Error} if the folder exists and `replace` is not set, or if a number is out of range
 */
export async function seedFolder(client: ClientBase, options: FolderOptions) {
  const { movements, seed = 1, reference = 'SEED', replace = false } = options
  checkMovements(movements)
  const random = new Random(seed)
  const loading = seedLoading(client, movements, options.onProgress)
  const { ids } = loading
  await ids.reserve(idsOfChart)
  await lockReference(client, reference)
  const { firmId, deleted, ...key } = await findOrCreateFolder(client, ids, random, reference, replace)
  const thirdPartyId = await findOrCreateSender(client, ids.next())
  const filled = await addLedger(loading, key, random, { ...options, thirdPartyId })
  await loading.load()
  await publishSeed(client, key, filled.exercices, deleted)
  return { ...key, firmId, ...filled, loadedBytes: loading.sentBytes() }
}

/**
 * Creates folders of a firm, each with a different ledger, as the owner of the tables. Events are written last.
 * @throws {Error} if a number is out of range
 */
export async function seedFirm(client: ClientBase, options: FirmOptions) {
  const { folders, first = 1, movements, seed = 1, reference = 'SEED', onProgress } = options
  assert(folders >= 1 && folders <= foldersMax, `from 1 to ${foldersMax} folders`)
  checkMovements(movements)
  await lookUpReferences(client)
  const random = new Random(seed)
  const loading = seedLoading(client, folders * movements, onProgress)
  const { ids } = loading
  await ids.reserve(folders + 3)
  const { schemaId, firmId } = options.firm ?? { schemaId: ids.next(), firmId: ids.next() }
  const thirdPartyId = await findOrCreateSender(client, ids.next())
  if (!options.firm) {
    await createSchema(client, { id: schemaId, name: `Cabinet ${reference}` })
    const name = `Cabinet ${random.pick(words.lastNames)} & Associés`
    await createFirm(client, { schemaId, id: firmId, name, siret: `${siren(random)}00026` })
  }
  const filled: (FolderKey & { exercices: { id: string }[] })[] = []
  const counts = { entries: 0, movements: 0 }
  for (let number = first; number < first + folders; number++) {
    const folderId = ids.next()
    const key = { schemaId, folderId }
    await createFolder(client, {
      ...{ ...words.folder, ...key, id: folderId, firmId, reference: `${reference}-${number}` },
      name: `${random.pick(words.companyNames)} ${random.pick(words.companyForms)} ${number}`,
      ...{ siret: `${siren(random)}00018`, capital: random.cents(5, 8), address: addressOf(random) },
    })
    const ledger = await addLedger(loading, key, random, { ...options, thirdPartyId })
    counts.entries += ledger.counts.entries
    counts.movements += ledger.counts.movements
    filled.push({ ...key, exercices: ledger.exercices })
  }
  await loading.load()
  for (const { exercices, ...key } of filled) await publishSeed(client, key, exercices)
  const folderIds = filled.map(({ folderId }) => folderId)
  return { schemaId, firmId, folderIds, counts, loadedBytes: loading.sentBytes() }
}

/** @param deleted the former exercices of a folder whose ledger was replaced */
function publishSeed(
  client: ClientBase,
  key: FolderKey,
  exercices: { id: string }[],
  deleted?: string[],
): Promise<void> {
  const created = exercices.map(({ id }) => id)
  const replaced = deleted !== undefined
  const events = { deleted: deleted ?? [], created, filled: created }
  return publishImport(client, { ...key, folderCreated: !replaced, replaced, ...events })
}

/**
 * Makes up the ledger of an empty folder. Its last rows are only written by the next `load`.
 * @returns first the closed previous year, then the year with nearly all movements; days are `YYYY-MM-DD`
 */
async function addLedger(
  loading: ReturnType<typeof seedLoading>,
  key: FolderKey,
  random: Random,
  options: Pick<LedgerOptions, 'movements' | 'year'> & { thirdPartyId: string },
) {
  const { movements, year = new Date().getFullYear(), thirdPartyId } = options
  const { ids, writer } = loading
  await ids.reserve(idsOfChart)
  const chart = buildChart(movements, random, () => ids.next())
  const exerciceOf = (calendarYear: number) => ({
    id: ids.next(),
    startDate: `${calendarYear}-01-01`,
    endDate: `${calendarYear}-12-31`,
  })
  const [before, current] = [exerciceOf(year - 1), exerciceOf(year)]
  const closed = { closedById: '7', closedByFirstName: 'Anaïs', closedByLastName: 'Lefèvre' }
  const masterRows: MasterRows = {
    ...chart,
    exercices: [
      { ...before, lettering: 'MONO', closedAt: `${year}-03-31T16:45:00Z`, ...closed },
      { ...current, lettering: 'MULTI' },
    ],
  }
  for (const [name, table] of Object.entries<TableOf<Record<string, unknown>>>(masterTables as never)) {
    const rows = writer(table)
    for (const row of masterRows[name as MasterTable]) rows.add({ ...key, ...row })
  }
  const [entries, movementRows] = [writer(entryTable), writer(movementTable)]
  const counts = { entries: 0, movements: 0, accounts: chart.accounts.length }
  const numberOf = entryNumbers()
  await loading.reserve()
  const ledger = generateLedger(chart, random, { movements, year, thirdPartyId })
  for (const { lines, opens: _, ...entry } of ledger) {
    const exerciceId = (entry.date < current.startDate ? before : current).id
    const entryId = ids.next()
    const number = numberOf({ exerciceId, ...entry })
    entries.add({ ...key, exerciceId, id: entryId, number, ...entry })
    for (const line of lines) movementRows.add({ ...key, exerciceId, entryId, id: ids.next(), ...line })
    counts.entries += 1
    counts.movements += lines.length
    await loading.loadBatch()
  }
  const exercices = [before, current].map(({ id, startDate: start, endDate: end }) => ({ id, start, end }))
  return { exercices, counts }
}

/** @returns the folder; if its ledger is replaced, also the ids of its former exercices in `deleted` */
async function findOrCreateFolder(
  client: ClientBase,
  ids: IdSource,
  random: Random,
  reference: string,
  replace: boolean,
): Promise<FolderKey & { firmId: string; deleted?: string[] }> {
  // Drawn even if the folder exists, so that the random numbers that follow are the same in both cases.
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

/**
 * Loads about 10,000 movements at a time, with one COPY for each table. So 300 small folders take no more statements
 * than a single large one.
 */
function seedLoading(client: ClientBase, movements: number, onProgress: LedgerOptions['onProgress']) {
  const ids = new IdSource(client)
  const writers = new Map<unknown, Pick<TableWriter<never>, 'pendingBytes' | 'flush'>>()
  let bytes = 0
  let loaded = 0

  /**
   * The writer of a table. Tables are loaded in the order in which their writers are first requested, so that must be
   * the order of their foreign keys.
   */
  function writer<Row>(table: TableOf<Row>): TableWriter<Row> {
    const found = (writers.get(table) as TableWriter<Row> | undefined) ?? new TableWriter(client, table)
    writers.set(table, found)
    return found
  }

  /** Reserves enough ids for the entries until the next batch. */
  const reserve = () => ids.reserve(idsPerBatch)

  async function load(): Promise<void> {
    loaded += writer(movementTable).pendingRows
    for (const each of writers.values()) {
      bytes += each.pendingBytes
      await each.flush()
    }
    onProgress?.(loaded, movements)
  }

  /** Loads the rows if there are enough for a batch. Called between two entries. */
  async function loadBatch(): Promise<void> {
    const isFirst = loaded === 0
    if (writer(movementTable).pendingRows < (isFirst ? movementsBeforeAnalyze : movementsPerBatch)) return
    await load()
    if (isFirst) await analyzeWhileLoading(client)
    await reserve()
  }

  return { ids, writer, reserve, load, loadBatch, sentBytes: () => bytes }
}
