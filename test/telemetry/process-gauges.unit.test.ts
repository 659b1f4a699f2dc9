import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { watchProcess } from '../../src/telemetry/sdk/process-gauges.ts'
import type { Observation } from '../../src/telemetry/telemetry.ts'

test('the use of the process is measured in seconds and bytes', async () => {
  const read = new Map<string, () => unknown>()
  const began = performance.now()
  onTestFinished(watchProcess((name, reader) => void read.set(name, reader), 0))
  const value = (name: string) => {
    const values = read.get(name)!() as number | Observation[]
    return typeof values === 'number' ? values : values.reduce((sum, each) => sum + each.value, 0)
  }
  await delay(50)
  const blocked = performance.now() + 300
  while (performance.now() < blocked);
  await delay(50)
  const longest = value('nodejs.eventloop.delay.max')
  expect(longest).toBeGreaterThan(0.2)
  expect(longest).toBeLessThan((performance.now() - began) / 1_000)
  // Processor time counts from the start of the process, so it includes at least the time of this test.
  const processor = value('process.cpu.time')
  expect(processor).toBeGreaterThan(0.1)
  expect(processor).toBeLessThan(process.uptime() * availableParallelism())
  const memory = value('process.memory.usage')
  expect(memory).toBeGreaterThan(10 * 2 ** 20)
  expect(memory).toBeLessThan(2 ** 36)
})
