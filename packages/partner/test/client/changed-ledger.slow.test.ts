/** What the library does when the ledger changes: under a stream and between two calls of `changes`. */
import { beforeAll, expect, test } from 'vitest'
import { applyDelta } from '../../../../test/support/changes/apply-delta.ts'
import { forTests } from '../../../../test/support/for-tests.ts'
import { until } from '../../../../test/support/until.ts'
import type { Changes } from '../../src/client/grandlivre.ts'
import { errorOf, joined } from '../support/client/chunks.ts'
import { setClientStage } from '../support/client/client-stage.ts'
import { type Fault, spoil, untouched } from '../support/client/faulty-proxy.ts'

const stage = forTests(() => setClientStage(2_000))
untouched(() => stage.proxy)
let exercice: string
/** Ids of the year's entries, ascending. */
let ids: number[]

beforeAll(async () => {
  ;({ exercice } = stage)
  const entries = (await entriesNow()).toString().trimEnd().split('\n')
  ids = entries.map((line) => Number(JSON.parse(line).producerId))
})

const movementsNow = () => stage.source(`/mad/movements?version=1.0.0&idExercice=${exercice}`)
const entriesNow = () => stage.source(`/mad/entries?version=1.0.0&idExercice=${exercice}`)

let comments = 0
/** Gives these entries, or all, a new comment. */
function change(changed?: number[]): Promise<void> {
  comments += 1
  const where = changed ? `id in (${changed.join(',')})` : `exercice_id = ${exercice}`
  return stage.change(`update entries set comment = 'comment ${comments}' where ${where}`)
}

/** Spoils the first answer with lines, and changes the ledger before the next answer. */
function spoilOnce(fault: Fault, meanwhile: () => Promise<void>): void {
  let isSpoilt = false
  stage.proxy.fault = async (path) => {
    if (isSpoilt || path.includes('blocks')) {
      if (isSpoilt) await meanwhile()
      meanwhile = async () => {}
      return undefined
    }
    isSpoilt = true
    return fault
  }
}

test.each(['cut', 'end'] as const)(
  'with the fault %s while the ledger changes, the stream begins again after its reader has discarded all rows',
  async (kind) => {
    spoilOnce({ kind, afterBytes: 1_000_000 }, () => change([ids[0]!]))
    let kept: Uint8Array[] = []
    const reasons: string[] = []
    const onRestart = async (reason: string) => {
      await Promise.resolve()
      reasons.push(reason)
      kept = []
    }
    const stream = stage.ledger().movements({ exercice }, { encoding: 'identity', onRestart })
    for await (const chunk of stream.chunks()) kept.push(chunk)
    expect(Buffer.concat(kept).equals(await movementsNow())).toBe(true)
    expect(reasons).toEqual([expect.stringContaining('ledger')])
    expect(stream.progress).toMatchObject({ restarts: 1, bytes: Buffer.concat(kept).length })
  },
)

test.each([
  ['', false],
  [', also where a proxy drops the ETag', true],
])(
  'without onRestart the stream ends with LEDGER-CHANGED, which says how many rows the reader got%s',
  async (_, isWithoutETag) => {
    spoilOnce({ kind: 'cut', afterBytes: 1_000_000, isWithoutETag }, () => change([ids[0]!]))
    const stream = stage.ledger().movements({ exercice }, { encoding: 'identity' })
    const error = await errorOf(joined(stream.chunks()))
    expect(error).toMatchObject({
      code: 'LEDGER-CHANGED',
      message: expect.stringContaining(`${stream.progress.rows} rows`),
    })
  },
)

test('a stream begins again if its reader got no row yet, or if the row to resume after was deleted', async () => {
  spoilOnce({ kind: 'cut', afterBytes: 200 }, () => change([ids[0]!]))
  const stream = stage.ledger().movements({ exercice }, { encoding: 'identity' })
  expect((await joined(stream.chunks())).equals(await movementsNow())).toBe(true)
  expect(stream.progress.restarts).toBe(1)

  const resume = { after: '9007199254740991', etag: stream.progress.etag!, rows: 10 }
  const refused = stage.ledger().movements({ exercice }, { resume })
  expect(await errorOf(joined(refused.chunks()))).toMatchObject({ code: 'LEDGER-CHANGED' })
  let restarts = 0
  const onRestart = () => {
    restarts += 1
  }
  const begun = stage.ledger().movements({ exercice }, { resume, onRestart })
  expect((await joined(begun.chunks())).equals(await movementsNow())).toBe(true)
  expect(restarts).toBe(1)
})

test('the blocks and the stream show the same state, even if the ledger changes between the two requests', async () => {
  let changes = 0
  stage.proxy.fault = async (path) => {
    if (!path.includes('blocks') && changes < 2) {
      changes += 1
      await change([ids[changes]!])
    }
    return undefined
  }
  const stream = stage.ledger().movements({ exercice }, { proof: 'blocks' })
  expect((await joined(stream.chunks())).equals(await movementsNow())).toBe(true)
  expect(stream.progress).toMatchObject({ connections: 1, provedBy: 'blocks' })
})

/** A library, and the cursor before fifty entries changed. */
async function afterManyChanges() {
  const ledger = stage.ledger({ attemptsMax: 3 })
  const { cursor } = await ledger.blocks({ exercice })
  await change(ids.slice(0, 50))
  return { ledger, cursor }
}

/** The bytes of the answer, made from its parts. */
async function deltaOf(changes: Changes<unknown>): Promise<string> {
  const { since, cursor, ranges: entries } = changes
  return `${JSON.stringify({ since, cursor, entries })}\n${await joined(changes.lines())}`
}

const faults: [string, Fault | undefined][] = [
  ['nothing', undefined],
  ['a cut in the first line', { kind: 'cut', afterBytes: 20 }],
  ['a cut', { kind: 'cut', afterBytes: 10_000 }],
  ['a stall', { kind: 'stall', afterBytes: 10_000 }],
  ['an early end', { kind: 'end', afterBytes: 10_000 }],
  ['a missing trailer', { kind: 'noTrailers' }],
]
test.each(faults)('changes of many lines arrive complete despite %s', async (_, fault) => {
  const ledger = stage.ledger({ stallMs: 200 })
  const selection = { exercice, classAccount: ['6', '44'] }
  const before = ledger.movements(selection)
  const copy = (await joined(before.chunks())).toString()
  await change(ids.filter((_, place) => place % 15 === 0))
  spoil(stage.proxy, [fault], /since/)
  const changes = await ledger.changes(before.progress.cursor!, selection, { encoding: 'identity' })
  const delta = await deltaOf(changes)
  expect(Buffer.byteLength(delta), 'more than the fault lets pass').toBeGreaterThan(20_000)
  expect(applyDelta(copy, delta) === (await joined(ledger.movements(selection).chunks())).toString()).toBe(
    true,
  )
})

test('changes that end early after a whole line, without trailers, are not accepted as complete', async () => {
  const { ledger, cursor } = await afterManyChanges()
  const path = `/mad/movements?version=1.0.0&idExercice=${exercice}&since=${cursor}`
  const expected = await stage.source(path)
  const ends = [0, 20_000, 30_000].map((from) => expected.indexOf(10, from) + 1)
  stage.proxy.fault = (asked) => {
    if (!asked.includes('since')) return { kind: 'noTrailers' }
    const afterBytes = ends.shift()
    return afterBytes === undefined ? { kind: 'noTrailers' } : { kind: 'end', afterBytes }
  }
  const changes = await ledger.changes(cursor, { exercice }, { encoding: 'identity' })
  expect((await deltaOf(changes)) === expected.toString()).toBe(true)
  expect(ends).toEqual([])
})

test('the changes of entries can be read item by item; an unchanged ledger has none', async () => {
  const ledger = stage.ledger()
  const before = ledger.entries({ exercice })
  await joined(before.chunks())
  const unchanged = await ledger.changes(before.progress.cursor!, { exercice }, { of: 'entries' })
  expect([unchanged.ranges, unchanged.cursor]).toEqual([[], before.progress.cursor])
  expect(await joined(unchanged.lines())).toHaveLength(0)
  await change([ids[3]!, ids[5]!])
  const changes = await ledger.changes(before.progress.cursor!, { exercice }, { of: 'entries' })
  const found: string[] = []
  for await (const entry of changes.items()) found.push(entry.producerId)
  expect(found).toEqual([String(ids[3]), String(ids[5])])
})

test('a waiting request is answered when the ledger changes', async () => {
  // Waiting is neither a missing answer nor a slow transfer.
  const ledger = stage.ledger({ answerMs: 1_000, stallMs: 100 })
  const { cursor } = await ledger.blocks({ exercice })
  const waiting = ledger.changes(cursor, { exercice }, { wait: 30 })
  await until(() => stage.proxy.asked.some(({ path }) => path.includes('wait=30')))
  await new Promise((waited) => setTimeout(waited, 300))
  await change([ids[7]!])
  const { ranges } = await waiting
  expect(ranges).toEqual([[String(ids[7]), String(ids[7])]])
})

test('changes are requested again in the new state if the reader got none of them yet', async () => {
  const ledger = stage.ledger()
  const { cursor } = await ledger.blocks({ exercice })
  await change([ids[0]!])
  spoilOnce({ kind: 'cut', afterBytes: 20 }, () => change([ids[1]!]))
  const changes = await ledger.changes(cursor, { exercice }, { encoding: 'identity' })
  expect(changes.ranges.flat().map(Number)).toEqual(expect.arrayContaining([ids[1]!]))
  expect((await joined(changes.lines())).length).toBeGreaterThan(0)
})

test('an empty answer does not prove that changes are complete', async () => {
  const { ledger, cursor } = await afterManyChanges()
  const path = `/mad/movements?version=1.0.0&idExercice=${exercice}&since=${cursor}`
  const afterBytes = (await stage.source(path)).indexOf(10, 20_000) + 1
  stage.proxy.fault = (asked) => ({ kind: 'end', afterBytes: asked.includes('since') ? afterBytes : 0 })
  const changes = await ledger.changes(cursor, { exercice }, { encoding: 'identity' })
  await expect(joined(changes.lines())).rejects.toMatchObject({ code: 'CONNECTION-LOST' })
})

const sha256 = 'x-content-sha256'
const unproven: [string, Fault][] = [
  ['with one wrong bit', { kind: 'flip', at: 20_000 }],
  ['without their SHA-256', { kind: 'trailers', dropped: [sha256] }],
  ['without their SHA-256 and with one wrong bit', { kind: 'trailers', dropped: [sha256], at: 20_000 }],
  ['with a wrong row count', { kind: 'trailers', changed: { 'x-row-count': '1' } }],
]
test.each(unproven)('changes %s are not accepted as proven', async (_, fault) => {
  const { ledger, cursor } = await afterManyChanges()
  stage.proxy.fault = () => fault
  const changes = await ledger.changes(cursor, { exercice }, { encoding: 'identity' })
  expect(await errorOf(joined(changes.lines()))).toMatchObject({ code: 'NOT-PROVEN' })
})

/** What happens before the library reads the changes of fifty entries. */
const meanwhile: [string, () => Promise<void> | void][] = [
  [
    'the ledger changes after a cut',
    () => spoilOnce({ kind: 'cut', afterBytes: 20_000 }, () => change([ids[0]!])),
  ],
  [
    'the answer after a cut is shorter than the part before it',
    async () => {
      await stage.change(
        `update entries set comment = repeat('long ', 400) where id in (${ids.slice(0, 50)})`,
      )
      spoilOnce({ kind: 'cut', afterBytes: 300_000 }, () => change(ids.slice(0, 50)))
    },
  ],
  [
    'a wrong bit before a cut is right in the repeated answer',
    () => void spoil(stage.proxy, [{ kind: 'cut', afterBytes: 20_000, at: 10_000 }], /since/),
  ],
  ['they lose their trailers, and the ledger changes again', () => loseTrailers(() => change([ids[60]!]))],
  [
    'they lose their trailers, and the ledger loses their last line',
    () => loseTrailers(() => stage.change(`delete from entries where id = ${ids[49]}`)),
  ],
]
/** No answer has trailers, and the ledger changes before the request that would prove the end. */
function loseTrailers(beforeQuestion: () => Promise<void>): void {
  stage.proxy.fault = async (path) => {
    if (!path.includes('since')) await beforeQuestion()
    return { kind: 'noTrailers' }
  }
}
test.each(meanwhile)('changes end with LEDGER-CHANGED if %s', async (_, happen) => {
  const { ledger, cursor } = await afterManyChanges()
  await happen()
  const changes = await ledger.changes(cursor, { exercice }, { encoding: 'identity' })
  expect(await errorOf(joined(changes.lines()))).toMatchObject({ code: 'LEDGER-CHANGED' })
})

test('after changes without trailers, trailers still prove later movements', async () => {
  const { ledger, cursor } = await afterManyChanges()
  stage.proxy.fault = (path) => (path.includes('since') ? { kind: 'noTrailers' } : undefined)
  await joined((await ledger.changes(cursor, { exercice })).lines())
  stage.proxy.asked = []
  const stream = ledger.movements({ exercice })
  await joined(stream.chunks())
  expect(stream.progress.provedBy).toBe('trailers')
  expect(stage.proxy.asked.map(({ path }) => path.replace(/\?.*/, ''))).toEqual(['/api/v1/mad/movements'])
})

test('discarded changes release their connection', async () => {
  const { ledger, cursor } = await afterManyChanges()
  stage.proxy.fault = (path) => (path.includes('since') ? { kind: 'stall', afterBytes: 10_000 } : undefined)
  await (await ledger.changes(cursor, { exercice }, { encoding: 'identity' })).discard()
  await until(() => stage.proxy.open() === 0)
})

test('a malformed cursor is refused, and the error names the parameter', async () => {
  const refused = stage.ledger().changes('4711.1.nothing', { exercice })
  await expect(refused).rejects.toMatchObject({ code: 'ERR-VALIDATION', issues: [{ parameter: 'since' }] })
})
