/**
 * The whole service on a database with four filled folders of two tenants and three firms, and their callers.
 */
import type { Config } from '../../../src/config.ts'
import { defaultTiming, type Timing } from '../../../src/timing.ts'
import { fillLedger } from '../ledgers/ledger.ts'
import { createTenants, credentials, folders, type Staff } from '../ledgers/tenants.ts'
import { createTestDatabase, type TestDatabase } from '../servers/database.ts'
import { startTestService, type TestService } from '../service.ts'

/** Has an accent and both kinds of quotes: it names the file of an export. */
export const folderReference = `Éts "L'Œuf" & Fils`

export interface ExportStage {
  database: TestDatabase
  staff: Staff
  service: TestService
  /** Headers of the company token of folder 111. */
  company: Record<string, string>
  /** Headers of the firm token of firm 110, without society-id. */
  firm: Record<string, string>
  /** Id of the third party that owns the tokens. */
  thirdPartyId: string
  close(): Promise<void>
}

/** @param timing by default that of production */
export async function setExportStage(
  settings: Partial<Config> = {},
  timing: Timing = defaultTiming,
): Promise<ExportStage> {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('PARTNER')
  const { rows } = await staff.client.query(`select id from grandlivre.third_parties where code = 'PARTNER'`)
  const thirdPartyId: string = rows[0].id
  for (const [label, { schemaId, folderId }] of Object.entries(folders))
    await fillLedger(staff.client, { schemaId, folderId, label, thirdPartyId })
  await staff.client.query('update grandlivre.folders set reference = $1 where id = $2', [
    folderReference,
    folders.first.folderId,
  ])
  const company = credentials(await staff.token('PARTNER', 'api', folders.first), secret)
  const firm = credentials(await staff.token('PARTNER', 'firm', folders.first), secret)
  const service = await startTestService(database, settings, { timing })
  return {
    database,
    staff,
    service,
    company,
    firm,
    thirdPartyId,
    close: async () => {
      await service.stop()
      await staff.end()
      await database.drop()
    },
  }
}
