/** Databases to import into and export from, and files for them. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { createOwnerPool, createPool } from '../../../src/db/pool.ts'
import type { LedgerRequest } from '../../../src/ledger/import/whole-folder.ts'
import { importMad, type MadImported, type MadImportOptions } from '../../../src/ledger/mad/import-mad.ts'
import { importTra, type TraImported } from '../../../src/ledger/tra/import-tra.ts'
import { createTestDatabase, type TestDatabase } from '../servers/database.ts'

export interface ImportStage {
  database: TestDatabase
  owner: pg.Pool
  /** Of the service, to export with. */
  service: pg.Pool
  /** Writes a file. @returns its path */
  written(bytes: Uint8Array | string, name?: string): Promise<string>
  importMad(bytes: Uint8Array | string, options?: Partial<MadImportOptions>): Promise<MadImported>
  importTra(bytes: Uint8Array | string, options?: Partial<LedgerRequest>): Promise<TraImported>
  close(): Promise<void>
}

/** An empty database by default. */
export async function setImportStage(database?: TestDatabase): Promise<ImportStage> {
  const used = database ?? (await createTestDatabase())
  const owner = createOwnerPool(used.ownerUrl, { max: 4, applicationName: 'import test' })
  const service = createPool(used.serviceUrl, { max: 4, applicationName: 'test' })
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-import-'))
  const written: ImportStage['written'] = async (bytes, name = 'file') => {
    const file = join(await mkdtemp(join(folder, 'file-')), name)
    await writeFile(file, bytes)
    return file
  }
  return {
    database: used,
    owner,
    service,
    written,
    importMad: async (bytes, options = {}) =>
      importMad(owner, { file: await written(bytes), timeZone: 'Europe/Paris', ...options }),
    importTra: async (bytes, options = {}) =>
      importTra(owner, { file: await written(bytes), timeZone: 'Europe/Paris', ...options }),
    close: async () => {
      await owner.end()
      await service.end()
      await used.drop()
      await rm(folder, { recursive: true })
    },
  }
}
