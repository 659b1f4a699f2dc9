/** The folder that the files of `fixtures/` are of: its FEC imported, and what a FEC does not say added. */
import type pg from 'pg'
import { createOwnerPool } from '../../../src/db/pool.ts'
import { type FecImported, importFec } from '../../../src/ledger/fec/import-fec.ts'
import { fixturePath, readFixture } from '../fixtures.ts'

/** In an empty database, so that ids are the same each time. */
export async function fillFixtureFolder(ownerUrl: string): Promise<FecImported> {
  const owner = createOwnerPool(ownerUrl, { max: 1, applicationName: 'test' })
  try {
    const file = fixturePath('ledger.fec.txt')
    const imported = await importFec(owner, { file, siren: '123456789', end: '2023-12-31' })
    await inOneTransaction(owner, readFixture('ledger.sql').toString('utf8'))
    return imported
  } finally {
    await owner.end()
  }
}

async function inOneTransaction(owner: pg.Pool, statements: string): Promise<void> {
  // Several statements of one query are one transaction.
  await owner.query(`set local search_path = grandlivre; ${statements}`)
}
