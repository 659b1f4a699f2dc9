/**
 * An upgrade from the release 0.2.0 to this version, as docs/operators/upgrade.md describes it. Meanwhile there are
 * streams, copies by ETag, full exports, events and edits of a ledger. Requests get 503 for a while, and nobody gets a
 * wrong answer. (Processes of 0.2.0 that ran beside the migration would answer some requests with 500 and 401. Under
 * overlapping streams, the migration would not end.)
 *
 * `npm run long -- upgrades` has UPGRADE_MOVEMENTS in the large folder, and writes what it saw to UPGRADE_RECORD.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { accessOf, startGrandlivre } from '../../packages/partner/test/support/cli/command-line.ts'
import { cli } from '../support/cli.ts'
import { openFolder } from '../support/fixtures/temporary-folder.ts'
import { forEachTest } from '../support/for-tests.ts'
import { withoutPooler } from '../support/pooled/pooled-run.ts'
import { type ServiceProcess, startProcess } from '../support/process.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { startBalancer } from '../support/upgrade/balancer.ts'
import { checkOutFormerCode, formerCommits, isFormerCodeKnown } from '../support/upgrade/former-code.ts'
import { seedReleasedFirm, turnMaintenanceOn } from '../support/upgrade/released-firm.ts'
import { startUpgradeLoad, type UpgradeLoad } from '../support/upgrade/upgrade-load.ts'

// The release does not work through a pooler.
withoutPooler()

const isLong = process.env['UPGRADE_MOVEMENTS'] !== undefined
const movements = Number(process.env['UPGRADE_MOVEMENTS'] ?? 20_000)
const smalls = isLong ? 12 : 3
const path = process.env['UPGRADE_RECORD']
/** Milliseconds of load before and after the upgrade. */
const quietMs = isLong ? 20_000 : 5_000

const database = forEachTest(() => createTestDatabase({ template: 'template1' }))
const former = forEachTest(() => checkOutFormerCode(formerCommits.released))
const files = forEachTest(() => openFolder('released'))
const balancer = forEachTest(startBalancer)
const processes: ServiceProcess[] = []

afterEach(async () => {
  for (const each of processes.splice(0)) await each.kill()
})

async function start(...code: [root: string, program: string] | []): Promise<ServiceProcess> {
  const settings = {
    DATABASE_URL: database.ownerUrl,
    DATA_DIR: files.path,
    PUBLIC_URL: balancer.url,
    WEBHOOK_ALLOW_INSECURE: 'true',
  }
  const started = await startProcess(settings, {}, ...code)
  processes.push(started)
  return started
}

/** Stops a process of 0.2.0 as operators do: takes it out of the balancer, then sends SIGTERM. */
async function stop(one: ServiceProcess): Promise<void> {
  await balancer.takeOut(one.url)
  one.child.kill('SIGTERM')
  expect(await one.ended).toEqual([0, null])
}

const faultsOf = ({ findings }: UpgradeLoad) =>
  Object.entries(findings).flatMap(([work, { details }]) => details.map((detail) => `${work}: ${detail}`))

/** Every outcome of every kind of work. */
const outcomesOf = ({ findings }: UpgradeLoad) => [
  ...new Set(Object.values(findings).flatMap(({ notes }) => Object.keys(notes))),
]

async function record(load: UpgradeLoad, seconds: Record<string, number>, first: ServiceProcess) {
  const steps = first
    .log()
    .filter((line) => line.includes('"migration.ended"'))
    .map((line) => JSON.parse(line) as { file: string; ms: number })
  const slowest = steps.toSorted((a, b) => b.ms - a.ms).slice(0, 3)
  const recorded = {
    at: new Date().toISOString(),
    movements,
    folders: smalls + 1,
    secondsUntil: seconds,
    secondsWithoutAnAnswer: load.longestMs() / 1000,
    slowestSteps: slowest.map(({ file, ms }) => `${file} ${ms} ms`),
    outcomes: Object.fromEntries(Object.entries(load.findings).map(([work, { notes }]) => [work, notes])),
    faults: faultsOf(load),
  }
  if (path) await writeFile(path, `${JSON.stringify(recorded, null, 2)}\n`)
}

test.skipIf(!isFormerCodeKnown)(
  'an upgrade from 0.2.0 answers 503 for a while, but gives no wrong answer, copy or event',
  async () => {
    const old = [await start(former.path, 'src/main.ts'), await start(former.path, 'src/main.ts')]
    for (const { url } of old) await balancer.add(url)
    const firm = await seedReleasedFirm(former.path, database.ownerUrl, { movements, smalls })
    const load = await startUpgradeLoad(balancer.url, database.ownerUrl, firm)
    await delay(quietMs)

    const began = performance.now()
    const seconds: Record<string, number> = {}
    const moment = (name: string) => {
      seconds[name] = Math.round((performance.now() - began) / 100) / 10
    }
    await turnMaintenanceOn(former.path, database.ownerUrl)
    for (const each of old) await stop(each)
    moment('no process of 0.2.0 is left')
    const fresh = await start()
    await balancer.add(fresh.url)
    moment('one of this version is ready')
    expect(await cli(database.ownerUrl, 'maintenance', 'off')).toMatchObject({ code: 0 })
    moment('maintenance is off')
    await balancer.add((await start()).url)

    await delay(quietMs)
    await load.stop()
    await record(load, seconds, fresh)
    expect(faultsOf(load)).toEqual([])
    const harmless = /^(done|exports|published|delivered.*|out of order|50[23]\b.*)$/
    expect(outcomesOf(load).filter((outcome) => !harmless.test(outcome))).toEqual([])
    expect(load.findings['events']!.notes).toMatchObject({ 'out of order': 0 })
    expect(load.findings['token information']!.notes).toMatchObject({
      '503 ERR-API-UNDER-MAINTENANCE': expect.any(Number),
    })
    const copy = join(files.path, 'firm.sqlite')
    const access = accessOf(balancer.url, firm.signed)
    for (const command of ['sync', 'verify']) {
      const { code, error } = await startGrandlivre(access, [command, '--to', copy]).ended
      expect({ command, code, error }).toMatchObject({ code: 0 })
    }
  },
  isLong ? 900_000 : undefined,
)
