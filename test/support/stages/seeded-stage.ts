/** A database with the years that the sample makes, and a partner with a company token of the folder. */
import { seededYear } from '../ledgers/seeded-year.ts'
import { createTenants, credentials } from '../ledgers/tenants.ts'
import { copyLedger } from '../servers/database.ts'

export async function setSeededStage(movements: number) {
  const { database, facts: folder } = await copyLedger(seededYear(movements))
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('ONE')
  return {
    database,
    staff,
    folder,
    secret,
    /** Headers of the token. */
    signed: credentials(await staff.token('ONE', 'api', folder), secret),
    /** The movements of the year with nearly all of them. */
    path: `/api/v1/mad/movements?version=1.0.0&idExercice=${folder.exercices[1]!.id}`,
    close: async () => {
      await staff.end()
      await database.drop()
    },
  }
}
