/** The measured folder: seeded once per size, in its own data folder and on its own embedded server. */
import { strict as assert } from 'node:assert'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { ensureDemoFolder } from '../packages/sample/src/demo-folder.ts'
import { keyCheck, loadMasterKeys } from '../src/auth/master-key.sql.ts'
import { readConfig } from '../src/config.ts'
import { openDatabase } from '../src/db/database.ts'
import { readTenantOf } from './dataset.sql.ts'
import { parentOf } from './measure.ts'
import { say } from './own-process.ts'

/** What every way reads: the validated movements of one exercice. Passed to the peers' processes. */
export interface YearOfFolder {
  /** The URL for the role of the service: row-level security applies to the peers, too. */
  databaseUrl: string
  schemaId: string
  folderId: string
  exerciceId: string
}

export interface Dataset {
  dataDir: string
  year: YearOfFolder
  /** The URL for the server's owner, who bypasses row-level security. */
  ownerUrl: string
  /** Hexadecimal. */
  masterKey: string
  /** The default store of a service on this data folder. */
  filesFolder: string
  /** The days of the exercice, `YYYY-MM-DD`. */
  period: { start: string; end: string }
  postgresVersion: string
  /** The postmaster. */
  databasePid: number
}

/**
 * @param movements of the whole folder; its last exercice holds all but one in a hundred of them, drafts included
 * @param stack stops the server
 * @param dataDir by default one that stays for later runs
 */
export async function openDataset(
  movements: number,
  stack: AsyncDisposableStack,
  dataDir = join(readConfig().dataDir, 'bench', String(movements)),
): Promise<Dataset> {
  say(`opening a folder of ${movements.toLocaleString('en')} movements; the first time it is seeded`)
  const settings = { dataDir, databaseUrl: undefined, masterKey: undefined }
  const check = await keyCheck(settings)
  const opening = openDatabase(settings, { check })
  // Registered before it is awaited, so that a server interrupted while it starts is stopped, too.
  stack.defer(async () => (await opening).close())
  const database = await opening
  const masterKeys = await loadMasterKeys(settings)
  const folder = await ensureDemoFolder(database, masterKeys, {
    dataDir,
    movements,
  })
  const exercice = folder.exercices.at(-1)
  assert(exercice, 'a seeded folder has exercices')
  const client = new pg.Client(database.ownerUrl)
  await client.connect()
  const { schemaId, postgresVersion, backendPid } = await readTenantOf(client, folder.societyId)
  const databasePid = parentOf(backendPid)
  await client.end()
  return {
    dataDir,
    ownerUrl: database.ownerUrl,
    masterKey: masterKeys[0].toString('hex'),
    filesFolder: join(dataDir, 'files'),
    year: {
      databaseUrl: database.directUrl,
      schemaId,
      folderId: folder.societyId,
      exerciceId: exercice.id,
    },
    period: { start: exercice.start, end: exercice.end },
    postgresVersion,
    databasePid,
  }
}

/**
 * A new data folder.
 * @param stack removes it
 */
export async function makeDataDir(stack: AsyncDisposableStack): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-bench-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  // Accessible to the user nobody, as whom PostgreSQL runs if the bench runs as root.
  await chmod(dataDir, 0o755)
  return dataDir
}
