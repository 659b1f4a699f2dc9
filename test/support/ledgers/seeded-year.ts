import { type SeededFolder, seed } from '../../../packages/sample/src/seed.ts'
import type { Ledger } from '../servers/database.ts'
import { copyLedger } from '../servers/database.ts'
import { createTenants, credentials } from './tenants.ts'

/** A seeded folder. 15,000 movements are 12 MB of JSON, far more than the buffers of an export. */
export const seededYear = (movements: number): Ledger<SeededFolder> => ({
  name: `year_of_${movements}`,
  fill: ({ ownerUrl }) => seed(ownerUrl, { movements, year: 2025 }),
})

/** A database with these years, and a partner with a company token of the folder. */
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
