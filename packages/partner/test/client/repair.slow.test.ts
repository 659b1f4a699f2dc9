/** A follower of one year, across a failover that lost commits of its copy, and across planned failovers. */
import pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { applyDelta } from '../../../../test/support/changes/apply-delta.ts'
import { forEachTest, forTests } from '../../../../test/support/for-tests.ts'
import { addLargeExercice, largeExercice } from '../../../../test/support/ledgers/large-exercice.ts'
import { setLossyFailover } from '../../../../test/support/replication/lossy-failover.ts'
import { request } from '../../../../test/support/service.ts'
import { until } from '../../../../test/support/until.ts'
import type { Changes, GrandlivreError, Repair } from '../../src/client/grandlivre.ts'
import { joined } from '../support/client/chunks.ts'
import { startFaultyProxy, untouched } from '../support/client/faulty-proxy.ts'
import { libraryOf } from '../support/client/library.ts'

const selection = { exercice: largeExercice }
const firstEntry = 1_000_000

const stage = forTests(setLossyFailover)
const proxy = forTests(() => startFaultyProxy(stage.service.url))
untouched(() => proxy)
const ledger = forEachTest(() => libraryOf(stage.company, proxy.url))
/** What the follower keeps. */
let copy = { cursor: '', text: '' }

beforeAll(async () => {
  const client = new pg.Client({ connectionString: stage.primary.ownerUrl })
  await client.connect()
  await addLargeExercice(client, 12_000)
  await client.end()
  await stage.standby.catchUp()
  await stage.standby.cutStream()
  await edit(150, 'lost')
  await change(`delete from movements where folder_id = 111 and entry_id = ${firstEntry + 950}`)
  const first = libraryOf(stage.company, proxy.url)
  const stream = first.movements(selection)
  copy.text = String(await joined(stream.chunks()))
  copy.cursor = stream.progress.cursor!
  first.close()
  await stage.promote()
  await until(async () => (await request(`${stage.service.url}/readyz`)).status === 200)
})

const change = (sql: string) => stage.sql(`set search_path = grandlivre; ${sql}; reset search_path`)
const edit = (entry: number, comment: string) =>
  change(`update entries set comment = '${comment}' where folder_id = 111 and id = ${firstEntry + entry}`)
const beginEpoch = () => change('select begin_epoch(true)')
const entriesAsked = () => proxy.asked.filter(({ path }) => path.includes('entries=')).length
/** The copy in chunks that do not end with lines. */
const copied = () => copy.text.match(/.{1,70000}/gs)!.map((piece) => Buffer.from(piece))

async function apply({ cursor, ranges, lines }: Repair | Changes<unknown>): Promise<void> {
  const head = JSON.stringify({ since: '', cursor, entries: ranges })
  const text = applyDelta(copy.text, `${head}\n${await joined(lines())}`)
  copy = { cursor, text }
}

/** Applies changes, or a repair, as a program does. @returns the ranges that were dropped */
async function follow(): Promise<Repair['ranges']> {
  const changes = await ledger.changes(copy.cursor, selection).catch((error: GrandlivreError) => {
    if (error.code !== 'ERR-CURSOR-EXPIRED') throw error
    return ledger.repair(selection, copied())
  })
  await apply(changes)
  return changes.ranges
}

async function expectTheYear(): Promise<void> {
  const address = `${stage.service.url}/api/v1/mad/movements?version=1.0.0&idExercice=${largeExercice}`
  const answer = await fetch(address, { headers: { ...stage.company, Accept: 'application/x-ndjson' } })
  expect(copy.cursor).toBe(answer.headers.get('x-ledger-cursor'))
  expect(copy.text === (await answer.text())).toBe(true)
}

test('after commits were lost, only the blocks that differ are read', async () => {
  await edit(450, 'new')
  const ranges = await follow()
  expect(ranges.map(([from]) => Number(from) - firstEntry)).toEqual([100, 400, 900])
  expect(entriesAsked()).toBe(1)
  await expectTheYear()
  // The cursor of the repair gives later changes.
  await edit(450, 'newer')
  expect(await follow()).toEqual([[String(firstEntry + 450), String(firstEntry + 450)]])
  await expectTheYear()
})

test('after a planned failover, only digests are read', async () => {
  await beginEpoch()
  expect(await follow()).toEqual([])
  expect(proxy.asked.map(({ path }) => path.replace(/\?.*/, ''))).toEqual([
    '/api/v1/mad/movements',
    '/api/v1/mad/movements/blocks',
  ])
  await expectTheYear()
})

test('three epochs with a change in each are repaired at once', async () => {
  for (const entry of [3, 303, 1_103]) {
    await beginEpoch()
    await edit(entry, 'again')
  }
  expect(await follow()).toHaveLength(3)
  await expectTheYear()
})

test('a cut answer is continued, and each block is proven', async () => {
  for (const fault of [
    { kind: 'cut', afterBytes: 300_000 },
    { kind: 'end', afterBytes: 300_000 },
  ] as const) {
    await beginEpoch()
    await edit(3, `cut ${fault.kind}`)
    let times = 0
    proxy.fault = (path) => {
      if (!path.includes('entries=')) return undefined
      times += 1
      return times === 1 ? fault : undefined
    }
    await apply(await ledger.repair(selection, copied(), { encoding: 'identity' }))
    expect(times).toBe(2)
    await expectTheYear()
  }
})

test('if the ledger changes between digests and lines, the cursor from the digests brings the rest', async () => {
  await beginEpoch()
  await edit(3, 'first')
  proxy.fault = async (path) => {
    if (!path.includes('entries=')) return undefined
    await edit(3, 'meanwhile')
    await edit(400, 'elsewhere')
    return undefined
  }
  await follow()
  proxy.fault = () => undefined
  await follow()
  await expectTheYear()
})

test('damaged or misplaced lines of a copy are refused; where lines are repeated or missing, blocks are read again', async () => {
  const repair = (text: string) => ledger.repair(selection, [Buffer.from(text)])
  const lines = copy.text.match(/.*\n/g)!
  const wrong = { code: 'INVALID-OPTION' }
  await expect(repair(copy.text.slice(0, -1))).rejects.toMatchObject(wrong)
  await expect(repair(copy.text + lines[5])).rejects.toMatchObject(wrong)
  for (const damaged of ['{}\n', '{"entry":\n', 'x\n'])
    await expect(repair(damaged + copy.text)).rejects.toMatchObject(wrong)
  expect((await repair(lines[0] + copy.text)).ranges).toHaveLength(1)
  expect((await repair(lines.slice(0, -1).join(''))).ranges).toHaveLength(1)
  expect((await repair('')).ranges).toHaveLength(12)
})
