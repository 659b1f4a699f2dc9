/** Fills a firm with folders whose ledgers differ, in one transaction. */
import { strict as assert } from 'node:assert'
import type { ClientBase } from 'pg'
import { publishImport } from '../../../src/ledger/publish-import.ts'
import { createFirm, createFolder, createSchema } from '../../../src/ledger/tenants.sql.ts'
import { addressOf, siren } from './made-up/parties.ts'
import { Random } from './made-up/random.ts'
import words from './made-up/words.json' with { type: 'json' }
import { findOrCreateSender, lookUpReferences } from './seed.sql.ts'
import { addLedger, checkMovements } from './seed.ts'
import { SeedLoading } from './seed-loading.ts'

export const foldersMax = 10_000

export interface FirmOptions {
  folders: number
  /** Of their numbers in names and references. Default: 1. */
  first?: number
  /** Exact number of movements of each folder. */
  movements: number
  /** The same seed gives the same firm apart from ids. */
  seed: number
  /** References of the folders begin with it. */
  reference: string
  /** Gets the folders. Default: a new one, in a new schema. */
  firm?: { schemaId: string; firmId: string }
  /** The later fiscal year, a calendar year. Default: the current one. */
  year?: number
  /** Called after each batch of movements. */
  onProgress?: (movementsDone: number, movements: number) => void
}

export interface SeededFirm {
  schemaId: string
  firmId: string
  /** Ascending. */
  folderIds: string[]
  counts: { entries: number; movements: number }
  /** Bytes of rows sent to the database. */
  loadedBytes: number
}

/**
 * Creates the folders of a firm, as the owner of the tables. Events come last.
 * @throws {Error} if a number is out of range
 */
export async function seedFirm(client: ClientBase, options: FirmOptions): Promise<SeededFirm> {
  const {
    folders,
    first = 1,
    movements,
    seed,
    reference,
    year = new Date().getFullYear(),
    onProgress,
  } = options
  assert(folders >= 1 && folders <= foldersMax, `from 1 to ${foldersMax} folders`)
  checkMovements(movements)
  const all = folders * movements
  await lookUpReferences(client)
  const random = new Random(seed)
  const loading = new SeedLoading(client, onProgress && ((done) => onProgress(done, all)))
  const { ids } = loading
  await ids.reserve(folders + 3)
  const { schemaId, firmId } = options.firm ?? { schemaId: ids.next(), firmId: ids.next() }
  const thirdPartyId = await findOrCreateSender(client, ids.next())
  if (!options.firm) {
    await createSchema(client, { id: schemaId, name: `Cabinet ${reference}` })
    const name = `Cabinet ${random.pick(words.lastNames)} & Associés`
    await createFirm(client, { schemaId, id: firmId, name, siret: `${siren(random)}00026` })
  }
  const filled: { folderId: string; exercices: string[] }[] = []
  const counts = { entries: 0, movements: 0 }
  for (let number = first; number < first + folders; number++) {
    const folderId = ids.next()
    const key = { schemaId, folderId }
    await createFolder(client, {
      ...{ ...words.folder, ...key, id: folderId, firmId, reference: `${reference}-${number}` },
      name: `${random.pick(words.companyNames)} ${random.pick(words.companyForms)} ${number}`,
      ...{ siret: `${siren(random)}00018`, capital: random.cents(5, 8), address: addressOf(random) },
    })
    const ledger = await addLedger(loading, key, random, { movements, year, thirdPartyId })
    counts.entries += ledger.counts.entries
    counts.movements += ledger.counts.movements
    filled.push({ folderId, exercices: ledger.exercices.map(({ id }) => id) })
  }
  await loading.load()
  for (const { folderId, exercices } of filled) {
    const isNew = { folderCreated: true, replaced: false, deleted: [] }
    await publishImport(client, { schemaId, folderId, ...isNew, created: exercices, filled: exercices })
  }
  const folderIds = filled.map(({ folderId }) => folderId)
  return { schemaId, firmId, folderIds, counts, loadedBytes: loading.bytes }
}
