import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { vacuumLedger } from '../../packages/sample/src/seed.sql.ts'
import { createOwnerPool } from '../../src/db/pool.ts'
import { makeDataDir } from '../dataset.ts'
import { project, say } from '../own-process.ts'
import { environmentOf, importFrom } from '../service-process.ts'
import { copyFolder, type TokenOfFolder } from './copies.sql.ts'

/** A checkout of the project with a folder in a database of its own, so schemas may differ. */
export interface Candidate {
  name: string
  checkout: string
  dataDir: string
}

/**
 * Seeds a folder with the command line of each checkout.
 * @param against folder of another checkout, to compare with this one
 * @param stack removes the data folders
 */
export async function makeCandidates(
  movements: number,
  against: string | undefined,
  stack: AsyncDisposableStack,
): Promise<Candidate[]> {
  const checkouts = [{ name: 'this checkout', checkout: project }]
  if (against !== undefined) checkouts.push({ name: against, checkout: resolve(against) })
  const candidates: Candidate[] = []
  for (const { name, checkout } of checkouts) {
    say(`seeding ${movements.toLocaleString('en')} movements for ${name}`)
    const dataDir = await makeDataDir(stack)
    // The service uses the folder with this reference as its own.
    const seed = ['src/cli.ts', 'seed', '--movements', String(movements), '--folder-reference', 'DEMO']
    await promisify(execFile)(process.execPath, seed, { cwd: checkout, env: environmentOf(dataDir) })
    candidates.push({ name, checkout, dataDir })
  }
  return candidates
}

/** While the database runs. */
export async function databaseOf({ dataDir }: Candidate): Promise<{ pid: number; postgresVersion: string }> {
  const postmaster = await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')
  const postgresVersion = (await readFile(join(dataDir, 'postgres/PG_VERSION'), 'utf8')).trim()
  return { pid: Number.parseInt(postmaster, 10), postgresVersion }
}

/** @returns the folder and its copies, each with a token */
export async function copyFolders(
  { name, checkout, dataDir }: Candidate,
  copies: number,
): Promise<TokenOfFolder[]> {
  say(`copying the folder ${copies.toLocaleString('en')} times for ${name}`)
  const { openDatabase } = await importFrom<typeof import('../../src/db/database.ts')>(
    checkout,
    'src/db/database.ts',
  )
  const database = await openDatabase({ dataDir, databaseUrl: undefined })
  const pool = createOwnerPool(database.ownerUrl, { max: 2, applicationName: 'grandlivre bench' })
  try {
    const tokens = await copyFolder(pool, 'DEMO', copies)
    await vacuumLedger(pool)
    return tokens
  } finally {
    await pool.end()
    await database.close()
  }
}
