import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Random } from '../../packages/sample/src/made-up/random.ts'
import { type Kind, kinds } from '../support/cluster/kinds.ts'
import { startLoad } from '../support/cluster/load.ts'
import { record } from '../support/cluster/record.ts'
import { openFolder } from '../support/fixtures/temporary-folder.ts'
import { forTests } from '../support/for-tests.ts'
import { missingOfCluster } from '../support/ops/patroni.ts'
import { until } from '../support/until.ts'

const path = process.env['FAILOVER_RECORD']
const failovers = Number(process.env['FAILOVERS'] ?? 1)
const seed = Number(process.env['FAILOVER_SEED'] ?? Date.now() % 1e6)
const first = Number(process.env['FAILOVER_KIND'] ?? 1) - 1
const nodes = process.env['FAILOVERS'] === undefined ? 2 : 3

const isLeftOut = missingOfCluster.length > 0
const out = forTests(() => openFolder('failovers'))
const load = forTests(() => startLoad({ nodes, out: out.path, seed }))

test.skipIf(isLeftOut)(
  `${failovers} failovers under load leave partners, subscribers and staff with consistent data`,
  async () => {
    const all: string[] = []
    for (let number = 0; number < failovers; number += 1) {
      const kind = kinds[(first + number) % kinds.length]!
      const own = seed + number
      const { lost, pauseMs } = await failOver(kind, own)
      const { counts, details } = load.findings.take()
      const secondsWithoutWrites = Math.round(pauseMs / 100) / 10
      const said = `${number + 1}: ${kind.name}, FAILOVER_SEED=${own}: ${lost} commits lost, ${secondsWithoutWrites} s without writes, found ${JSON.stringify(counts)}`
      console.log(`${said}${details.map((detail) => `\n   ${detail}`).join('')}`)
      all.push(...details.map((detail) => `${said}: ${detail}`))
      const at = new Date().toISOString()
      if (path)
        await record(path, {
          at,
          seed: own,
          kind: kind.name,
          lost,
          secondsWithoutWrites,
          found: counts,
          details,
        })
    }
    console.log(load.findings.notes)
    expect(all).toEqual([])
  },
  60_000 + failovers * 240_000,
)

async function failOver(kind: Kind, own: number): Promise<{ lost: number; pauseMs: number }> {
  const { cluster, writers } = load
  const random = new Random(own)
  await cluster.setSynchronous(kind.isSynchronous)
  await load.go()
  await delay(random.integer(3_000, 6_000))
  const primary = await cluster.leader()
  await kind.prepare?.(cluster, primary, writers, random)
  await load.sleeper.loop.pause()
  const began = performance.now()
  const { replaced, mend } = await kind.happen(cluster, primary, random)
  if (replaced === undefined) await delay(2_000)
  else await until(async () => (await cluster.leader()) !== replaced)
  const changed = performance.now()
  await until(() => writers.lastAt() > changed)
  await mend()
  await delay(random.integer(1_000, 3_000))
  load.sleeper.loop.resume()
  await cluster.settle()
  await delay(3_000)
  const pauseMs = writers.longestPause(began)
  await load.rest()
  const lost = await writers.lost()
  // Then it shows nothing.
  if (!kind.isSynchronous && lost === 0) throw new Error('No commit was lost: the log was not held')
  if (kind.isSynchronous && lost > 0)
    load.findings.add('commits lost although they were synchronous', `${lost}`)
  await load.check()
  return { lost, pauseMs }
}
