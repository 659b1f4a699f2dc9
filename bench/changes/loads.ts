/**
 * The load of a ledger with and without the log of its changes. Each load fills an empty database of its own, so that
 * no round pays for the rows of the one before, and is measured until its commit.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import type { Dataset } from '../dataset.ts'
import { startUsage } from '../measure.ts'
import { say } from '../own-process.ts'
import type { Row, Sample } from '../rows.ts'
import { importFrom } from '../service-process.ts'
import { createDatabase, dropDatabase, type LogSize, readLogSize, removeChangeLog } from './load.sql.ts'

const withLogName = 'with the log'
const withoutLogName = 'without the log'
const againstName = 'another checkout'

export interface Loads {
  /** Processor time is that of the database. The last row is the one to compare with. */
  rows: Row[]
  /** What a load leaves in the log. */
  log: LogSize
}

interface Candidate {
  name: string
  /** Database with the schema of the candidate and no rows. */
  empty: string
  seed: typeof import('../../packages/sample/src/seed.ts')['seed']
}

/** Database of the load that runs. */
const filled = 'bench_load'

export interface Checkouts {
  here: string
  /** Another checkout of the project, whose loads take turns with those of this one. */
  against: string | undefined
}

export async function measureLoads(
  { ownerUrl, databasePid }: Dataset,
  movements: number,
  rounds: number,
  { here, against }: Checkouts,
): Promise<Loads> {
  const url = (database: string) => Object.assign(new URL(ownerUrl), { pathname: `/${database}` }).href
  return withClient(ownerUrl, async (owner) => {
    const prepare = async (name: string, checkout: string, alter?: (client: pg.Client) => Promise<void>) => {
      const empty = `bench_empty_${candidates.length}`
      await dropDatabase(owner, empty)
      await createDatabase(owner, empty)
      const { openDatabase } = await importFrom<typeof import('../../src/db/database.ts')>(
        checkout,
        'src/db/database.ts',
      )
      await (await openDatabase({ dataDir: '', databaseUrl: url(empty) })).close()
      if (alter) await withClient(url(empty), alter)
      const seedFile = 'packages/sample/src/seed.ts'
      const { seed } = await importFrom<typeof import('../../packages/sample/src/seed.ts')>(
        checkout,
        existsSync(join(checkout, seedFile)) ? seedFile : 'src/sample/seed.ts',
      )
      candidates.push({ name, empty, seed })
    }
    const candidates: Candidate[] = []
    await prepare(withLogName, here)
    await prepare(withoutLogName, here, removeChangeLog)
    if (against !== undefined) await prepare(againstName, against)

    const rows = candidates.map(({ name }): Row => ({ name, samples: [] }))
    let log: LogSize | null = null
    for (let round = 1; round <= rounds; round++)
      for (const [index, { name, empty, seed }] of candidates.entries()) {
        say(`load ${round} of ${rounds}: ${name}`)
        await dropDatabase(owner, filled)
        await createDatabase(owner, filled, empty)
        rows[index]!.samples.push(await measureLoad(seed, url(filled), movements, databasePid))
        if (name === withLogName) log = await withClient(url(filled), readLogSize)
      }
    for (const name of [filled, ...candidates.map(({ empty }) => empty)]) await dropDatabase(owner, name)
    return { rows, log: log! }
  })
}

async function measureLoad(
  seed: Candidate['seed'],
  ownerUrl: string,
  movements: number,
  databasePid: number,
): Promise<Sample> {
  const { promise, resolve } = Promise.withResolvers<Sample>()
  const end = startUsage({ pid: undefined, databasePid })
  const before = process.cpuUsage()
  const started = performance.now()
  const onLoaded = (loaded: { loadedBytes: number }): void => {
    const ms = performance.now() - started
    const { user, system } = process.cpuUsage(before)
    const bytes = loaded.loadedBytes
    resolve({ ms, firstByteMs: null, bytes, rows: movements, ...end(), clientCpuMs: (user + system) / 1e3 })
  }
  // It ends after the vacuum, which is the same for all.
  await seed(ownerUrl, { movements, onLoaded })
  return promise
}

async function withClient<T>(connectionString: string, run: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}
