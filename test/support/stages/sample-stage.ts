/** The whole service with the folder that a newcomer tries it with, and its credentials. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { correctEntries, ensureDemoFolder } from '../../../packages/sample/src/demo-folder.ts'
import type { Config } from '../../../src/config.ts'
import type { Credentials } from '../../../src/http/reference/demo-credentials.ts'
import { credentials as signedBy } from '../ledgers/tenants.ts'
import { ask, createTestDatabase } from '../servers/database.ts'
import { startTestService } from '../service.ts'

export type SampleStage = Awaited<ReturnType<typeof setSampleStage>>

/** Starts the stage. Webhooks to this machine are allowed. */
export async function setSampleStage(movements: number, settings: Partial<Config> = {}) {
  const database = await createTestDatabase()
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-sample-'))
  let folder: Omit<Credentials, 'baseUrl'> | undefined
  const service = await startTestService(
    database,
    { webhookAllowInsecure: true, ...settings },
    {
      prepare: async (opened, masterKey) => {
        folder = await ensureDemoFolder(opened, masterKey, { dataDir, movements })
        return () => {}
      },
    },
  )
  const credentials = { baseUrl: service.url, ...folder! }
  const idExercice = credentials.exercices.at(-1)!.id
  return {
    url: service.url,
    credentials,
    /** Headers of the folder's company token. */
    company: signedBy(credentials.companyToken, credentials.thirdPartySecret),
    /** The newest exercice. */
    idExercice,
    /** Changes 100 validated entries of the exercice, as a bookkeeper would. */
    correctEntries: () => correctEntries(database.ownerUrl, credentials.societyId, idExercice),
    /** Runs statements as the owner of the database. */
    change: (statements: string) => ask(database.ownerUrl, statements),
    close: async () => {
      await service.stop()
      await rm(dataDir, { recursive: true, force: true })
      await database.drop()
    },
  }
}
