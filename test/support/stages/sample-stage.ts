/** The whole service with the folder that a newcomer tries it with, and its credentials. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { correctEntries, ensureDemoFolder } from '../../../packages/sample/src/demo-folder.ts'
import type { Config } from '../../../src/config.ts'
import type { Credentials } from '../../../src/http/reference/demo-credentials.ts'
import { createTestDatabase } from '../servers/database.ts'
import { startTestService } from '../service.ts'

export interface SampleStage {
  url: string
  credentials: Credentials
  /** Headers of its company token. */
  company: Record<string, string>
  /** The newest exercice. */
  idExercice: string
  /** Changes 100 validated entries of it, as a bookkeeper would. */
  correctEntries(): Promise<number>
  /** Runs statements as the owner of the database, in the schema of the service. */
  change(sql: string): Promise<void>
  close(): Promise<void>
}

/** Webhooks may go to this machine. */
export async function setSampleStage(
  movements: number,
  settings: Partial<Config> = {},
): Promise<SampleStage> {
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
    company: {
      Authorization: `Bearer ${credentials.companyToken}`,
      'X-Third-Party-Secret': credentials.thirdPartySecret,
    },
    idExercice,
    correctEntries: () => correctEntries(database.ownerUrl, credentials.societyId, idExercice),
    change: async (sql) => {
      const client = new pg.Client(database.ownerUrl)
      await client.connect()
      await client.query(`set search_path = grandlivre; ${sql}`).finally(() => client.end())
    },
    close: async () => {
      await service.stop()
      await rm(dataDir, { recursive: true, force: true })
      await database.drop()
    },
  }
}
