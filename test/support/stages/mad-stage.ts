/** Filled folders in a database, their full exports as files, and what SQL expects of these files. */
import { Buffer } from 'node:buffer'
import type pg from 'pg'
import { createPool } from '../../../src/db/pool.ts'
import { twoChunkBuffers } from '../../../src/exports/chunks.ts'
import { openSnapshot, type Snapshot } from '../../../src/exports/read/snapshot.ts'
import { renderFile } from '../../../src/exports/render/file-renderers.ts'
import type { FileTotals } from '../../../src/exports/render/render-rows.ts'
import { wholeFolder } from '../../../src/exports/selection.ts'
import { copyLate } from '../fixtures/copy-late.ts'
import { addToFolder } from '../ledgers/full-ledger.ts'
import { fillLedger } from '../ledgers/ledger.ts'
import { createTenants, folders, type Staff } from '../ledgers/tenants.ts'
import { plainBuffer } from '../plain/plain-buffer.ts'
import { madCollectionNames, readPlainCollection, readPlainEntries } from '../plain/plain-mad.ts'
import { createTestDatabase } from '../servers/database.ts'

/** The first day of the last year of the ledger. */
export const today = '2025-07-01'
/** Just after midnight of that day in Paris; in UTC, the year before has not ended. */
const now = Date.UTC(2025, 5, 30, 22, 0, 0, 123)
export const metadata = {
  version: '1.0.0',
  createdAt: now,
  producer: 'Grandlivre',
  additionalFreeProperties: { exportId: 'export_0123' },
}

export interface Folder {
  schemaId: string
  folderId: string
}

export interface MadFile {
  bytes: Buffer
  text: string
  parts: Buffer[]
  /** The last element of `counts`. */
  totals: FileTotals
  counts: FileTotals[]
}

export interface MadStage {
  staff: Staff
  /** A pool of the service; its connections are named `test`. */
  pool: pg.Pool
  render: typeof render
  file(folder: Folder, chunkBytes?: number): Promise<MadFile>
  /** The text that SQL expects. */
  expected(folder: Folder): Promise<string>
  close(): Promise<void>
}

/** All folders but `sameFirm` are filled. */
export async function setMadStage(): Promise<MadStage> {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  await staff.thirdParty('PARTNER')
  const { rows } = await staff.client.query(`select id from grandlivre.third_parties where code = 'PARTNER'`)
  for (const [label, { schemaId, folderId }] of Object.entries(folders)) {
    if (label === 'sameFirm') continue
    const folder = { schemaId, folderId }
    await fillLedger(staff.client, { ...folder, label, thirdPartyId: rows[0].id })
    await addToFolder(staff.client, folder)
  }
  const pool = createPool(database.serviceUrl, { max: 4, applicationName: 'test' })
  return {
    staff,
    pool,
    render,
    file: (folder, chunkBytes) => file(pool, folder, chunkBytes),
    expected: (folder) => expected(staff, folder),
    close: async () => {
      await pool.end()
      await staff.end()
      await database.drop()
    },
  }
}

function render(snapshot: Snapshot, folder: Folder, chunkBytes?: number) {
  const totals: FileTotals[] = []
  const { schemaId, folderId } = folder
  const options = {
    selection: wholeFolder({ schemaId, folderId }, 'Europe/Paris'),
    exportId: 'export_0123',
    version: '1.0.0',
    withEmployees: true,
    now,
    buffer: chunkBytes === undefined ? twoChunkBuffers() : plainBuffer(chunkBytes),
    leftOut: () => {},
    noted: () => {},
  }
  return { totals, chunks: renderFile('JSON', snapshot, { ...options, counted: (sum) => totals.push(sum) }) }
}

async function file(pool: pg.Pool, folder: Folder, chunkBytes?: number): Promise<MadFile> {
  const snapshot = await openSnapshot(pool, folder.schemaId)
  const { totals, chunks } = render(snapshot, folder, chunkBytes)
  try {
    const parts = await copyLate(chunks)
    await snapshot.close()
    const bytes = Buffer.concat(parts)
    return { bytes, text: bytes.toString('utf8'), parts, totals: totals.at(-1)!, counts: totals }
  } catch (error) {
    await snapshot.close(error as Error)
    throw error
  }
}

async function expected(staff: Staff, folder: Folder): Promise<string> {
  const data: Record<string, unknown> = {}
  for (const name of madCollectionNames) {
    const items = await readPlainCollection(staff.client, folder, name, today)
    data[name] = name === 'accountingFolder' ? items[0] : items
  }
  data['entries'] = await readPlainEntries(staff.client, folder)
  return JSON.stringify({ metadata, data })
}
