/**
 * From the release 0.2.0 to this version, under streams, copies by ETag, full exports, events and edits of a ledger
 * (docs/operators/upgrade.md). As the page says it, requests get 503 for a while, and nobody a wrong answer. Without
 * maintenance, processes of 0.2.0 serve beside the migration, and a few of their requests fail.
 *
 * `npm run long -- upgrades` has UPGRADE_MOVEMENTS in the large folder, and writes what it saw to UPGRADE_RECORD.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { accessOf, startGrandlivre } from '../../packages/partner/test/support/cli/command-line.ts'
import { cli } from '../support/cli.ts'
import { withoutPooler } from '../support/pooled/pooled-run.ts'
import { type ServiceProcess, startProcess } from '../support/process.ts'
import { createTestDatabase, type TestDatabase } from '../support/servers/database.ts'
import { type Balancer, startBalancer } from '../support/upgrade/balancer.ts'
import { checkOutFormerCode, formerCommits, isFormerCodeKnown } from '../support/upgrade/former-code.ts'
import { seedReleasedFirm, turnMaintenanceOn } from '../support/upgrade/released-firm.ts'
import { startUpgradeLoad, type UpgradeLoad } from '../support/upgrade/upgrade-load.ts'

// The release refuses one.
withoutPooler()

const isLong = process.env['UPGRADE_MOVEMENTS'] !== undefined
const movements = Number(process.env['UPGRADE_MOVEMENTS'] ?? 20_000)
const path = process.env['UPGRADE_RECORD']
/** Of load before and after. */
const quietMs = isLong ? 20_000 : 5_000

let database: TestDatabase
let former: string
let dataDir: string
let balancer: Balancer
const processes: ServiceProcess[] = []
const recorded: Record<string, unknown> = {}

beforeEach(async () => {
  if (!isFormerCodeKnown) return
  former = await checkOutFormerCode(formerCommits.released)
  dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-release-'))
  database = await createTestDatabase({ template: 'template1' })
  balancer = await startBalancer()
})
afterEach(async () => {
  for (const each of processes.splice(0)) await each.kill()
  await balancer?.close()
  await database?.drop()
  for (const folder of [former, dataDir]) if (folder) await rm(folder, { recursive: true, force: true })
})
afterAll(async () => {
  if (!path) return
  const at = new Date().toISOString()
  await writeFile(path, `${JSON.stringify({ at, movements, ...recorded }, null, 2)}\n`)
})

async function start(...code: [root: string, program: string] | []): Promise<ServiceProcess> {
  const settings = {
    DATABASE_URL: database.ownerUrl,
    DATA_DIR: dataDir,
    PUBLIC_URL: balancer.url,
    WEBHOOK_ALLOW_INSECURE: 'true',
  }
  const started = await startProcess(settings, {}, ...code)
  processes.push(started)
  return started
}

/** As operators stop one of 0.2.0: out of the balancer, then SIGTERM. */
async function stop(one: ServiceProcess): Promise<void> {
  await balancer.takeOut(one.url)
  one.child.kill('SIGTERM')
  expect(await one.ended).toEqual([0, null])
}

/** Two processes of 0.2.0 under load, then the upgrade, then load on two of this version, whose copies are proven. */
async function upgraded(
  way: string,
  upgrade: (old: ServiceProcess[], moment: (name: string) => void) => Promise<void>,
): Promise<UpgradeLoad> {
  const old = [await start(former, 'src/main.ts'), await start(former, 'src/main.ts')]
  for (const { url } of old) await balancer.add(url)
  const firm = await seedReleasedFirm(former, database.ownerUrl, { movements, smalls: isLong ? 12 : 3 })
  const load = await startUpgradeLoad(balancer.url, database.ownerUrl, firm)
  await delay(quietMs)
  const began = performance.now()
  const seconds: Record<string, number> = {}
  const moment = (name: string) => {
    seconds[name] = Math.round((performance.now() - began) / 100) / 10
  }
  await upgrade(old, moment)
  await delay(quietMs)
  await load.stop()
  const copy = join(dataDir, 'firm.sqlite')
  const access = accessOf(balancer.url, firm.signed)
  for (const command of ['sync', 'verify']) {
    const { code, error } = await startGrandlivre(access, [command, '--to', copy]).ended
    expect({ command, code, error }).toMatchObject({ code: 0 })
  }
  const steps = processes[2]!
    .log()
    .filter((line) => line.includes('"migration.ended"'))
    .map((line) => JSON.parse(line) as { file: string; ms: number })
  const slowest = steps.toSorted((a, b) => b.ms - a.ms).slice(0, 3)
  recorded[way] = {
    secondsUntil: seconds,
    secondsWithoutAnAnswer: load.gap.ms / 1000,
    slowestSteps: slowest.map(({ file, ms }) => `${file} ${ms} ms`),
    outcomes: Object.fromEntries(Object.entries(load.findings).map(([work, { notes }]) => [work, notes])),
    faults: faultsOf(load),
  }
  return load
}

const faultsOf = ({ findings }: UpgradeLoad) =>
  Object.entries(findings).flatMap(([work, { details }]) => details.map((detail) => `${work}: ${detail}`))

/** Every outcome of every kind of work. */
const outcomesOf = ({ findings }: UpgradeLoad) => [
  ...new Set(Object.values(findings).flatMap(({ notes }) => Object.keys(notes))),
]

test.skipIf(!isFormerCodeKnown)(
  'under maintenance, an upgrade from 0.2.0 gives 503 for a while, and no wrong answer, copy or event',
  async () => {
    const load = await upgraded('under maintenance', async (old, moment) => {
      await turnMaintenanceOn(former, database.ownerUrl)
      for (const each of old) await stop(each)
      moment('no process of 0.2.0 is left')
      const fresh = await start()
      moment('a process of this version listens')
      await balancer.add(fresh.url)
      moment('it is ready')
      expect(await cli(database.ownerUrl, 'maintenance', 'off')).toMatchObject({ code: 0 })
      moment('maintenance is off')
      await balancer.add((await start()).url)
    })
    expect(faultsOf(load)).toEqual([])
    const harmless = /^(done|exports|published|delivered.*|out of order|503 .*|502 )$/
    expect(outcomesOf(load).filter((outcome) => !harmless.test(outcome))).toEqual([])
    expect(load.findings['events']!.notes).toMatchObject({ 'out of order': 0 })
    expect(load.findings['token information']!.notes).toMatchObject({
      '503 ERR-API-UNDER-MAINTENANCE': expect.any(Number),
    })
  },
  isLong ? 900_000 : undefined,
)

test.skipIf(!isFormerCodeKnown || !isLong)(
  'without maintenance, an upgrade from 0.2.0 fails requests, but no copy, file or event',
  async () => {
    const load = await upgraded('without maintenance', async (old, moment) => {
      const fresh = await start()
      moment('a process of this version listens')
      await balancer.add(fresh.url)
      moment('it is ready')
      for (const each of old) await stop(each)
      moment('no process of 0.2.0 is left')
      await balancer.add((await start()).url)
    })
    expect(faultsOf(load)).toEqual([])
  },
  900_000,
)
