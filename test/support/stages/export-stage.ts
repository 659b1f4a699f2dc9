/**
 * The whole service on a database with four filled folders of two tenants and three firms, and their callers.
 */
import type { Config } from '../../../src/config.ts'
import { defaultTiming, type Timing } from '../../../src/timing.ts'
import { fillFolders } from '../ledgers/ledger.ts'
import { createTenants, credentials, folders, staffOf } from '../ledgers/tenants.ts'
import { connect, copyLedger, type Ledger } from '../servers/database.ts'
import { startTestService } from '../service.ts'

type Headers = Record<string, string>

/** Has an accent and both kinds of quotes: it names the file of an export. */
export const folderReference = `Éts "L'Œuf" & Fils`

export type ExportStage = Awaited<ReturnType<typeof setExportStage>>

const fourLedgers: Ledger<{ company: Headers; firm: Headers; thirdPartyId: string }> = {
  name: 'four_folders',
  fill: async ({ ownerUrl }) => {
    const staff = await createTenants(ownerUrl)
    const { secret, thirdPartyId } = await fillFolders(staff, folders)
    await staff.sql('update folders set reference = $1 where id = $2', [
      folderReference,
      folders.first.folderId,
    ])
    const company = credentials(await staff.token('PARTNER', 'api', folders.first), secret)
    const firm = credentials(await staff.token('PARTNER', 'firm', folders.first), secret)
    await staff.end()
    return { company, firm, thirdPartyId }
  },
}

/** @param timing by default that of production */
export async function setExportStage(settings: Partial<Config> = {}, timing: Timing = defaultTiming) {
  const { database, facts } = await copyLedger(fourLedgers)
  const staff = staffOf(await connect(database.ownerUrl))
  const service = await startTestService(database, settings, { timing })
  return {
    database,
    staff,
    service,
    /** Headers of the company token of folder 111. */
    company: facts.company,
    /** Headers of the firm token of firm 110, without society-id. */
    firm: facts.firm,
    /** Id of the third party that owns the tokens. */
    thirdPartyId: facts.thirdPartyId,
    close: async () => {
      await service.stop()
      await staff.end()
      await database.drop()
    },
  }
}
