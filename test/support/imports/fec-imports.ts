/** Imports made-up files; each test has its own database. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { createOwnerPool } from '../../../src/db/pool.ts'
import { type FecImported, type FecImportOptions, importFec } from '../../../src/ledger/fec/import-fec.ts'
import { type FecRow, fecFile } from '../ledgers/fec-file.ts'
import { createTestDatabase, type TestDatabase } from '../servers/database.ts'

export interface FecImports {
  /** The owner's pool, on the database of the running test. */
  pool(): pg.Pool
  /** The addresses of that database. */
  ownerUrl(): string
  serviceUrl(): string
  /** `file` is a name without a folder; by default it names a SIREN and the year 2023. */
  importFile(bytes: Buffer, options?: Partial<FecImportOptions>): Promise<FecImported>
  importRows(rows: readonly FecRow[], options?: Partial<FecImportOptions>): Promise<FecImported>
}

export function fecImports(): FecImports {
  let database: TestDatabase
  let pool: pg.Pool
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'grandlivre-fec-'))
  })
  afterAll(() => rm(folder, { recursive: true }))
  beforeEach(async () => {
    database = await createTestDatabase()
    pool = createOwnerPool(database.ownerUrl, { max: 4, applicationName: 'import test' })
  })
  afterEach(async () => {
    await pool.end()
    await database.drop()
  })

  const importFile: FecImports['importFile'] = async (bytes, options = {}) => {
    // In its own folder: another import may be reading a file of the same name.
    const file = join(await mkdtemp(join(folder, 'file-')), options.file ?? '123456789FEC20231231.txt')
    await writeFile(file, bytes)
    return importFec(pool, { ...options, file })
  }
  return {
    pool: () => pool,
    ownerUrl: () => database.ownerUrl,
    serviceUrl: () => database.serviceUrl,
    importFile,
    importRows: (rows, options) => importFile(fecFile(rows), options),
  }
}
