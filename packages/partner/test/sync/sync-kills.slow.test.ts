/**
 * A sync may be killed at any moment: in the first reading, in changes, or while every ledger is read again. The next run
 * completes its copy, and verify then finds no row that differs. A sync with --follow goes on by itself after the service
 * was killed.
 *
 * `npm run test:slow` kills one run and one service for each database; `npm run long -- partner-kills` 100 and 30 (SYNC_KILLS,
 * SYNC_SERVICE_KILLS). SYNC_SEED chooses other moments.
 */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { forTests } from '../../../../test/support/for-tests.ts'
import { startProcess } from '../../../../test/support/process.ts'
import { until } from '../../../../test/support/until.ts'
import { Random } from '../../../sample/src/made-up/random.ts'
import { type RunningCommand, startGrandlivre } from '../support/cli/command-line.ts'
import { setYearStage } from '../support/cli/year-stage.ts'
import { setCopyPlaces } from '../support/sync/copies.ts'
import { copyKinds } from '../support/sync/rows.ts'

const kills = Number(process.env['SYNC_KILLS'] ?? 1)
const serviceKills = Number(process.env['SYNC_SERVICE_KILLS'] ?? 1)
const seed = Number(process.env['SYNC_SEED'] ?? Date.now() % 1e6)
/** Number of kills after which a new copy begins. */
const killsOfCopy = 5

const stage = forTests(() => setYearStage(20_000))
const places = forTests(setCopyPlaces)

test.each(copyKinds)(
  '%s: after a kill, the next run makes the copy equal to the ledger',
  async (kind) => {
    const random = new Random(seed)
    /** How long a run of each sort takes, in milliseconds. */
    const usual = { first: 2_000, changes: 1_000, again: 2_000 }
    let [address, killed] = ['', 0]
    for (let kill = 0; kill < kills; kill += 1) {
      const sort = kill % killsOfCopy === 0 ? 'first' : random.fraction() < 0.3 ? 'again' : 'changes'
      if (sort === 'first') address = places.newAddress(kind)
      else await stage.change(1 + Math.floor(random.fraction() * 400))
      const words = ['--to', address]
      const { child, ended } = startGrandlivre(stage.firm, [
        'sync',
        ...words,
        ...(sort === 'again' ? ['--again'] : []),
      ])
      const ms = usual[sort] * (0.3 + 0.7 * random.fraction())
      const started = performance.now()
      const timer = setTimeout(() => child.kill('SIGKILL'), ms)
      const { code } = await ended
      clearTimeout(timer)
      if (code === null) killed += 1
      // A run that ended before the kill shows how long runs take, so that later runs are killed earlier.
      else usual[sort] = performance.now() - started
      const moment = `SYNC_SEED=${seed}, kill ${kill} after ${Math.round(ms)} ms: ${sort}`
      for (const command of ['sync', 'verify'])
        expect(await startGrandlivre(stage.firm, [command, ...words]).ended, moment).toMatchObject({
          code: 0,
          error: '',
        })
    }
    if (kills > 10) console.log(`${kind}: ${killed} of ${kills} runs were killed before their end`)
  },
  60_000 + kills * 30_000,
)

test.each(copyKinds)(
  '%s: a following run makes the copy equal to the ledger, whenever the service is killed',
  async (kind) => {
    const random = new Random(seed)
    const settings = { DATABASE_URL: stage.databaseUrl, DATA_DIR: join(stage.out, `data-${kind}`) }
    let service = await startProcess(settings)
    const env = { ...stage.firm, GRANDLIVRE_URL: service.url }
    const { port: PORT } = new URL(service.url)
    let words: string[] = []
    let following: RunningCommand | undefined
    for (let kill = 0; kill < serviceKills; kill += 1) {
      if (kill % killsOfCopy === 0) {
        words = ['--to', places.newAddress(kind)]
        // The log of the service begins again. A command gives up soon until the service has answered once.
        await service.kill()
        service = await startProcess({ ...settings, PORT })
        following = startGrandlivre(env, ['sync', '--json', '--follow', ...words])
        await until(() => service.logged('request.ended'))
        await delay(1_500 * random.fraction())
      } else {
        await stage.change(1 + Math.floor(random.fraction() * 400))
        await delay(300 * random.fraction())
      }
      await service.kill()
      await stage.change(10)
      service = await startProcess({ ...settings, PORT })
      const { child, soFar, ended } = following!
      const isEnded = () => child.exitCode !== null
      await until(() => soFar.out.includes('"kind":"done"') || isEnded())
      if ((kill + 1) % killsOfCopy !== 0 && kill + 1 < serviceKills) continue
      child.kill('SIGINT')
      const moment = `SYNC_SEED=${seed}, until kill ${kill}`
      expect(await ended, moment).toMatchObject({ code: 0 })
      expect(await startGrandlivre(env, ['verify', ...words]).ended, moment).toMatchObject({ code: 0 })
    }
    await service.kill()
  },
  60_000 + serviceKills * 30_000,
)
