/**
 * Faults of everything that the service needs, each on real servers and under load: its alert fires, no other does
 * except those that follow from it, and all end after the repair. `npm run long -- alerts` causes all twelve;
 * `npm run test:slow` one. `npm run long -- normal-load` causes none for an hour.
 *
 * For faults, durations of the rules are divided by `factor`, and Prometheus reads every two seconds. For the hour the
 * rules are those of operators.
 */
import { writeFile } from 'node:fs/promises'
import { loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, describe, expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { type Fault, faults } from '../support/ops/faults.ts'
import { isClockChangeable, startOperatedStage } from '../support/ops/operated-stage.ts'
import { isPrometheusInstalled } from '../support/ops/prometheus.ts'
import { isPgBouncerInstalled } from '../support/servers/pgbouncer.ts'
import { installedS3Programs } from '../support/servers/s3-programs.ts'
import { until } from '../support/until.ts'

/** By default only the quickest fault is caused. */
const { FAULTS = 'pooler restarted', LOAD_SECONDS = '0' } = process.env
const isComplete = FAULTS === 'all'
const chosen = faults.filter(({ name }) => isComplete || FAULTS.split(', ').includes(name))
const loadSeconds = isComplete ? 30 : Number(LOAD_SECONDS)
const isLong = loadSeconds >= 600

/** Half an hour becomes a minute and a half, and a minute three seconds. */
const factor = isLong ? 1 : 20
/** Some readings may take a second and a half. */
const scrapeSeconds = isLong ? 15 : 2

const isPossible =
  isPrometheusInstalled &&
  isPgBouncerInstalled &&
  isClockChangeable &&
  installedS3Programs.includes('versitygw') &&
  process.getuid?.() === 0

/** Alerts begin and end within minutes. */
const timeout = 300_000

describe.runIf(isPossible)('with real servers', () => {
  const stage = forTests(() =>
    startOperatedStage({
      movements: isLong ? 20_000 : 2_000,
      prometheus: { factor, scrapeSeconds },
      timing: isLong ? {} : { certificatesMs: 3_000 },
    }),
  )
  const results: object[] = []

  afterAll(async () => {
    if (isComplete) await record('alerts.json', { factor, results })
  })

  /**
   * Whether no alert fires or is pending. With a part of the faults, only this alert counts: on a machine that is busy
   * with other tests, something may always be late.
   */
  const isQuiet = async (alert: string): Promise<boolean> => {
    const active = await stage.prometheus.active()
    return isComplete ? active.length === 0 : !active.includes(alert)
  }

  async function causeAndRepair(fault: Fault): Promise<void> {
    // Prometheus sees an increase only if it has read the series before.
    await until(async () => (await stage.prometheus.value('grandlivre_ready{need="store"}')) === 1)
    await until(() => isQuiet(fault.alert))
    const began = Date.now()
    await fault.cause(stage)
    await until(async () => (await stage.prometheus.firing()).includes(fault.alert))
    const fired = Date.now()
    await fault.repair(stage)
    const repaired = Date.now()
    await until(() => isQuiet(fault.alert))
    const others = (await stage.prometheus.since(began, 'firing')).filter((name) => name !== fault.alert)
    results.push({
      fault: fault.name,
      alert: fault.alert,
      firedAfterSeconds: seconds(fired - began),
      endedAfterSeconds: seconds(Date.now() - repaired),
      others: others.join(', '),
    })
    if (!isComplete) return
    console.log(JSON.stringify(results.at(-1)))
    expect(others.filter((name) => !fault.companions.includes(name))).toEqual([])
  }

  const waits = { timeout: loadSeconds * 1_000 + timeout }
  test.runIf(loadSeconds > 0)('no alert fires under normal load', waits, async () => {
    await until(async () => (await stage.prometheus.value('grandlivre_ready{need="store"}')) === 1)
    const began = Date.now()
    await delay(loadSeconds * 1_000)
    const load = Object.entries(stage.load.counts)
    const result = {
      seconds: seconds(Date.now() - began),
      fired: (await stage.prometheus.since(began, 'firing')).join(', '),
      began: new Date(began).toISOString(),
      pending: (await stage.prometheus.since(began, 'pending')).join(', '),
      machineLoad: loadavg()
        .map((load) => load.toFixed(1))
        .join(', '),
      load: stage.load.counts,
    }
    console.log(JSON.stringify(result, null, 2))
    if (isLong) await record('normal-load.json', result)
    expect(result.fired).toBe('')
    expect(load.filter(([, { done, failed }]) => done === 0 || failed > 0)).toEqual([])
  })

  for (const fault of chosen) test(`${fault.name}: ${fault.alert}`, { timeout }, () => causeAndRepair(fault))
})

// Vitest reports a file without tests as a failure.
if (!isPossible) test.skip('alerts on real servers', () => {})

const seconds = (ms: number): number => Math.round(ms / 100) / 10

async function record(name: string, result: object): Promise<void> {
  await writeFile(`bench/results/${name}`, `${JSON.stringify(result, null, 2)}\n`)
}
