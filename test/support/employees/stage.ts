/** The fixture's folder with an employee of whom everything is known, and callers with and without the group `employees`. */
import { type TokenGroup, tokenGroups } from '../../../src/auth/callers.sql.ts'
import { fillFixtureFolder } from '../fixtures/fixture-folder.ts'
import { createTenants, credentials, type Staff } from '../ledgers/tenants.ts'
import { createTestDatabase, type TestDatabase } from '../servers/database.ts'
import { startTestService, type TestService } from '../service.ts'

type Headers = Record<string, string>

export interface EmployeesStage {
  database: TestDatabase
  staff: Staff
  service: TestService
  folder: { schemaId: string; folderId: string; exerciceId: string }
  /** Headers of the token of the folder that opens everything, and of one without the employees. */
  opened: Headers
  hidden: Headers
  token(level: 'api' | 'firm', groups: TokenGroup[] | null): Promise<Headers>
  close(): Promise<void>
}

/** Is in every personal column, and nowhere else. */
export const mark = 'Zyx'

export async function setEmployeesStage(): Promise<EmployeesStage> {
  const database = await createTestDatabase()
  const folder = await fillFixtureFolder(database.ownerUrl)
  const staff = await createTenants(database.ownerUrl)
  await staff.client.query(
    `update grandlivre.employees set first_name = '${mark} first', last_name = '${mark} last', email = '${mark}@example.com',
       phone_number = '${mark} phone', phone_number_bis = '${mark} bis', nir = '${mark} nir', profession = '${mark} job',
       address = row('${mark} 1', '${mark} 2', '${mark} 3', '${mark} 4', '${mark} 5', '${mark} 6', '${mark} 7', 'FRANCE')::grandlivre.address,
       ibans = array['${mark} iban'], contacts = '[{"firstname": "${mark} friend", "phoneNumber": "${mark}"}]',
       miscellaneous = '{"referent": "${mark} referent", "group": "${mark} group"}'`,
  )
  const secret = await staff.thirdParty('ONE')
  const service = await startTestService(database)
  const token = async (level: 'api' | 'firm', groups: TokenGroup[] | null) =>
    credentials(await staff.token('ONE', level, folder, { groups }), secret)
  return {
    ...{ database, staff, service, folder, token },
    opened: await token('api', null),
    hidden: await token(
      'api',
      tokenGroups.filter((group) => group !== 'employees'),
    ),
    close: async () => {
      await service.stop()
      await staff.end()
      await database.drop()
    },
  }
}
