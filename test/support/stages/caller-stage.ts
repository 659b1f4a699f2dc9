/** The whole service on a database with tenants and no ledger, and one caller who is admitted. */

import { createTenants, credentials, folders, type IssuedToken, type Staff } from '../ledgers/tenants.ts'
import { createTestDatabase, type TestDatabase } from '../servers/database.ts'
import { startTestService, type TestService } from '../service.ts'

/** A route that requires only a caller. */
export const keyInfo = '/api/v1/key/info'

export interface CallerStage {
  database: TestDatabase
  staff: Staff
  service: TestService
  /** The secret of the third party ONE, which owns the token. */
  secret: string
  /** The company token of folder 111. */
  company: IssuedToken
  /** Headers with both. */
  signed: Record<string, string>
  close(): Promise<void>
}

export async function setCallerStage(): Promise<CallerStage> {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('ONE')
  const company = await staff.token('ONE', 'api', folders.first)
  const service = await startTestService(database)
  return {
    database,
    staff,
    service,
    secret,
    company,
    signed: credentials(company, secret),
    close: async () => {
      await service.stop()
      await staff.end()
      await database.drop()
    },
  }
}
