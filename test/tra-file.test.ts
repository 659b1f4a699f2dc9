/** A TRA file against what SQL says is in the folder. */
import { Buffer } from 'node:buffer'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPool } from '../src/db/pool.ts'
import type { MadTotals } from '../src/exports/mad-file.ts'
import { openSnapshot } from '../src/exports/snapshot.ts'
import { countTraMovements, renderTraFile } from '../src/exports/tra-file.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { addToFolder } from './support/full-ledger.ts'
import { fillLedger } from './support/ledger.ts'
import { plainTra } from './support/plain-tra.ts'
import type { PlainTra } from './support/plain-tra-line.ts'
import { createTenants, folders, type Staff } from './support/tenants.ts'

let database: TestDatabase
let staff: Staff
let pool: pg.Pool

type Key = { schemaId: string; folderId: string }
type Chosen = Pick<PlainTra, 'exerciceId' | 'period' | 'journalIds'>

beforeAll(async () => {
  database = await createTestDatabase()
  staff = await createTenants(database.ownerUrl)
  await staff.thirdParty('PARTNER')
  const { rows } = await staff.client.query(`select id from grandlivre.third_parties where code = 'PARTNER'`)
  for (const [label, { schemaId, folderId }] of Object.entries(folders)) {
    if (label === 'sameFirm') continue
    const folder = { schemaId, folderId }
    await fillLedger(staff.client, { ...folder, label, thirdPartyId: rows[0].id })
    await addToFolder(staff.client, folder)
  }
  pool = createPool(database.serviceUrl, { max: 4, applicationName: 'test' })
})

afterAll(async () => {
  await pool?.end()
  await staff?.end()
  await database?.drop()
})

async function file(folder: Key, chosen: Chosen = {}, chunkBytes = 256 * 1024) {
  const { schemaId, folderId } = folder
  const { exerciceId, period, journalIds = [] } = chosen
  const selection = { schemaId, folderId, exerciceId, period, journalIds }
  const snapshot = await openSnapshot(pool, schemaId)
  const counts: MadTotals[] = []
  const leftOut: string[] = []
  const parts: Buffer[] = []
  try {
    const rowsTotal = await countTraMovements(snapshot.second, selection)
    const chunks = renderTraFile(snapshot, {
      selection,
      timeZone: 'Europe/Paris',
      now: Date.UTC(2026, 6, 31, 22, 5),
      chunkBytes,
      room: (bytes) => new Uint8Array(bytes),
      counted: (totals) => counts.push(totals),
      leftOut: (axes) => leftOut.push(...axes),
    })
    for await (const chunk of chunks) parts.push(Buffer.from(chunk))
    await snapshot.close()
    const bytes = Buffer.concat(parts)
    return { bytes, lines: linesOf(bytes), parts, counts, totals: counts.at(-1)!, rowsTotal, leftOut }
  } catch (error) {
    await snapshot.close(error as Error)
    throw error
  }
}

const linesOf = (bytes: Buffer) => bytes.toString('latin1').split('\r\n')

/** The lines of what SQL says, which a failing test can show better than bytes. */
async function expected({ schemaId, folderId }: Key, chosen: Chosen = {}): Promise<string[]> {
  return linesOf(
    await plainTra(staff.client, { folder: { schemaId, folderId }, generatedAt: '010820260005', ...chosen }),
  )
}

describe('a file', () => {
  test.each(['first', 'otherFirm', 'otherTenant', 'sameFirm'] as const)(
    'of the whole folder %s is what SQL says, byte for byte',
    async (name) => {
      expect((await file(folders[name])).lines).toEqual(await expected(folders[name]))
    },
  )
})
