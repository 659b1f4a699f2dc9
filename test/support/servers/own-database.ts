/** A PostgreSQL server of one test, which it may stop and start like an operator or a crash. */
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'
import { openCluster } from '../../../src/db/embedded/cluster.ts'
import { startEmbeddedDatabase } from '../../../src/db/embedded/embedded.ts'
import { findPrograms, runProgram } from '../../../src/db/embedded/programs.ts'
import type { TestDatabase } from './database.ts'
import { copyFolder } from './server.ts'

export interface OwnDatabase extends TestDatabase {
  /** Ends all its processes at once, like a crash; `start` recovers. */
  stop(): Promise<void>
  /** Starts it again at the same address. */
  start(): Promise<void>
  /** Runs `pg_ctl` on its data folder and waits for the result, as in `control('promote')`. */
  control(...words: string[]): Promise<void>
}

/**
 * @param prepare changes the data folder of PostgreSQL before the first start
 * @param disk where its folder is created
 */
export async function startOwnDatabase(
  prepare: (path: string) => Promise<void> = async () => {},
  disk = tmpdir(),
): Promise<OwnDatabase> {
  const folder = await mkdtemp(join(disk, 'grandlivre-own-database-'))
  // Accessible to the user nobody, as whom PostgreSQL runs if the tests run as root.
  await chmod(folder, 0o755)
  const dataDir = join(folder, 'data')
  await copyCluster(dataDir)
  await prepare(join(dataDir, 'postgres'))
  // Durable: what it confirmed before it was stopped must exist afterwards.
  const database = await startEmbeddedDatabase({ dataDir, durable: true })
  const programs = await findPrograms()
  const { path } = await openCluster(dataDir, programs)
  // The command line of the server: its program, then each option in quotes.
  const command = await readFile(join(path, 'postmaster.opts'), 'utf8')
  const options = command.slice(command.indexOf(' "')).trim()
  const control = (...words: string[]) =>
    runProgram(programs.pg_ctl, [...words, '--wait', '--timeout=120', `--pgdata=${path}`])
  let isUp = true
  const stop = async () => {
    await control('stop', '--mode=immediate')
    isUp = false
  }
  return {
    ownerUrl: database.ownerUrl,
    serviceUrl: database.serviceUrl,
    control,
    stop,
    start: async () => {
      await control('start', `--options=${options}`, `--log=${join(path, 'server.log')}`)
      isUp = true
    },
    drop: async () => {
      if (isUp) await stop()
      // Its connection is gone, so it finds nothing left to stop.
      await database.stop()
      await rm(folder, { recursive: true })
    },
  }
}

/**
 * Creates a data folder with an embedded database, migrated, passwords included: a copy of the one that the
 * run starts with. Creating it from scratch takes three seconds of processor time, half of it for initdb,
 * half for the migrations.
 * @param dataDir does not exist yet
 */
export async function copyCluster(dataDir: string): Promise<void> {
  await copyFolder(inject('cluster'), dataDir)
}
