import { expect, test } from 'vitest'
import { checkTiming, type Timing, defaultTiming as usual } from '../src/timing.ts'

test('the durations that the service uses are consistent with each other', () => {
  expect(() => checkTiming(usual)).not.toThrow()
})

const { listener, store, exports, deliveries, telemetry, closeMs } = usual
const contradictions: [string, Partial<Timing>, string][] = [
  [
    'headers outlast their request',
    { listener: { ...listener, headersMs: 30_001 } },
    'the limit for headers',
  ],
  ['exports outlast the process', { exports: { ...exports, stopMs: closeMs } }, 'time left'],
  ['deliveries outlast the process', { deliveries: { ...deliveries, stopMs: closeMs } }, 'time left'],
  [
    'a collector outlasts the process',
    { telemetry: { ...telemetry, flushMs: closeMs } },
    'no time left to send',
  ],
  ['the first pause is the longest', { store: { ...store, retryMs: 8_001 } }, 'the longest pause'],
  ['a silent request outlasts a slow one', { store: { ...store, idleMs: 60_000 } }, 'not distinguished'],
  [
    'a slow answer is always late',
    { deliveries: { ...deliveries, slowMs: 10_000 } },
    'exceeds the time limit',
  ],
]

test.each(contradictions)('durations are refused if %s', (_, changed, reason) => {
  expect(() => checkTiming({ ...usual, ...changed })).toThrow(reason)
})
