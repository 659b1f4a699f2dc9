/**
 * The whole service on a database with four filled folders of two tenants and three firms, and their callers.
 */
import type { Config } from '../../../src/config.ts'
import { defaultTiming, type Timing } from '../../../src/timing.ts'
import { fillFolders } from '../ledgers/ledger.ts'
import { createTenants, credentials, folders } from '../ledgers/tenants.ts'
import { createTestDatabase } from '../servers/database.ts'
import { startTestService } from '../service.ts'

/** Has an accent and both kinds of quotes: it names the file of an export. */
export const folderReference = `Éts "L'Œuf" & Fils`

export type ExportStage = Awaited<ReturnType<typeof setExportStage>>

/** @param timing by default that of production */
export async function setExportStage(settings: Partial<Config> = {}, timing: Timing = defaultTiming) {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const { secret, thirdPartyId } = await fillFolders(staff, folders)
  await staff.sql('update folders set reference = $1 where id = $2', [
    folderReference,
    folders.first.folderId,
  ])
  const service = await startTestService(database, settings, { timing })
  return {
    database,
    staff,
    service,
    /** Headers of the company token of folder 111. */
    company: credentials(await staff.token('PARTNER', 'api', folders.first), secret),
    /** Headers of the firm token of firm 110, without society-id. */
    firm: credentials(await staff.token('PARTNER', 'firm', folders.first), secret),
    /** Id of the third party that owns the tokens. */
    thirdPartyId,
    close: async () => {
      await service.stop()
      await staff.end()
      await database.drop()
    },
  }
}
