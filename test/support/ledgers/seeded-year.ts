import { type SeededFolder, seed } from '../../../packages/sample/src/seed.ts'
import type { Ledger } from '../servers/database.ts'

/** The seed's folder. 15,000 movements are twelve megabytes of JSON: far more than the buffers of an export hold. */
export const seededYear = (movements: number): Ledger<SeededFolder> => ({
  name: `year_of_${movements}`,
  fill: ({ ownerUrl }) => seed(ownerUrl, { movements, year: 2025 }),
})
