/** The service as `npm start` runs it: with an embedded database, the demo folder and its credentials. */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureDemoFolder } from '../../../packages/sample/src/demo-folder.ts'
import {
  type Credentials,
  readCredentials,
  writeCredentials,
} from '../../../src/http/reference/demo-credentials.ts'
import { copyCluster } from '../servers/own-database.ts'
import { startTestService } from '../service.ts'

export type DemoStage = Awaited<ReturnType<typeof setDemoStage>>

/** @param movements how many movements the demo folder has */
export async function setDemoStage(movements: number) {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-demo-'))
  // Accessible to the user nobody, as whom PostgreSQL runs if the tests run as root.
  await chmod(folder, 0o755)
  const dataDir = join(folder, 'data')
  await copyCluster(dataDir)
  const service = await startTestService(
    { ownerUrl: '' },
    { databaseUrl: undefined, dataDir },
    {
      prepare: async (database, masterKey) => {
        const made = await ensureDemoFolder(database, masterKey, { dataDir, movements })
        return (baseUrl) => writeCredentials(dataDir, { baseUrl, ...made })
      },
    },
  )
  return {
    service,
    credentials: readCredentials(dataDir) as Credentials,
    dataDir,
    close: async () => {
      await service.stop()
      await rm(folder, { recursive: true })
    },
  }
}
