/** The whole service on a database with tenants and no ledger, and one caller who is admitted. */

import { createTenants, credentials, folders } from '../ledgers/tenants.ts'
import { createTestDatabase } from '../servers/database.ts'
import { startTestService } from '../service.ts'

/** A route that requires only a caller. */
export const keyInfo = '/api/v1/key/info'

export type CallerStage = Awaited<ReturnType<typeof setCallerStage>>

export async function setCallerStage() {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('ONE')
  const company = await staff.token('ONE', 'api', folders.first)
  const service = await startTestService(database)
  return {
    database,
    staff,
    service,
    /** The secret of the third party ONE, which owns the token. */
    secret,
    /** The company token of folder 111. */
    company,
    /** Headers with the token and the secret. */
    signed: credentials(company, secret),
    close: async () => {
      await service.stop()
      await staff.end()
      await database.drop()
    },
  }
}
