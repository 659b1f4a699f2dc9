/** A database to import into and to export from, with files to import. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { createOwnerPool, createPool } from '../../../src/db/pool.ts'
import { type FecImportOptions, importFec } from '../../../src/ledger/fec/import-fec.ts'
import type { LedgerRequest } from '../../../src/ledger/import/folder-target.ts'
import { importMad, type MadImportOptions } from '../../../src/ledger/mad/import-mad.ts'
import { importTra } from '../../../src/ledger/tra/import-tra.ts'
import { type FecRow, fecFile } from '../ledgers/fec-file.ts'
import { rowCounts } from '../ledgers/ledger-content.ts'
import { createTestDatabase, type TestDatabase } from '../servers/database.ts'

export type ImportStage = Awaited<ReturnType<typeof setImportStage>>

/** @param given default: a new, empty database */
export async function setImportStage(given?: TestDatabase) {
  const database = given ?? (await createTestDatabase())
  const owner = createOwnerPool(database.ownerUrl, { max: 4, applicationName: 'import test' })
  const service = createPool(database.serviceUrl, { max: 4, applicationName: 'test' })
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-import-'))
  /** Writes a file, in its own folder: another import may be reading one of the same name. @returns its path */
  const written = async (bytes: Uint8Array | string, name = 'file') => {
    const file = join(await mkdtemp(join(folder, 'file-')), name)
    await writeFile(file, bytes)
    return file
  }
  const importFile = async (bytes: Uint8Array | string, options: Partial<FecImportOptions> = {}) =>
    importFec(owner, { ...options, file: await written(bytes, options.file ?? '123456789FEC20231231.txt') })
  return {
    database,
    owner,
    /** Of the service, to export with. */
    service,
    written,
    importMad: async (bytes: Uint8Array | string, options: Partial<MadImportOptions> = {}) =>
      importMad(owner, { file: await written(bytes), timeZone: 'Europe/Paris', ...options }),
    importTra: async (bytes: Uint8Array | string, options: Partial<LedgerRequest> = {}) =>
      importTra(owner, { file: await written(bytes), timeZone: 'Europe/Paris', ...options }),
    /** @param options.file the name of the file. By default it contains a SIREN and the last day of 2023 */
    importFile,
    importRows: (rows: readonly FecRow[], options?: Partial<FecImportOptions>) =>
      importFile(fecFile(rows), options),
    /** Runs an import that must fail with this message and change the number of rows in no table. */
    expectRefused: async (run: () => Promise<unknown>, message: string | RegExp) => {
      const before = await rowCounts(owner)
      await expect(run()).rejects.toThrow(message)
      expect(await rowCounts(owner)).toEqual(before)
    },
    close: async () => {
      await owner.end()
      await service.end()
      await database.drop()
      await rm(folder, { recursive: true })
    },
  }
}
