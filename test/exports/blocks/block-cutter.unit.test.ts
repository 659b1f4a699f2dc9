/** Cutting lines into blocks: their sizes, which ones are kept, and their digests against a plain implementation. */
import { describe, expect, test } from 'vitest'
import { Random } from '../../../packages/sample/src/made-up/random.ts'
import {
  type Block,
  blocksText,
  changedRanges,
  type FormerBlock,
  markChanged,
  noBlocks,
} from '../../../src/exports/blocks/block.ts'
import { BlockCutter } from '../../../src/exports/blocks/block-cutter.ts'
import type { EntryRange } from '../../../src/ledger/changes/entry-ranges.ts'
import { checkBounds, plainBlocks } from '../../support/ledgers/plain-blocks.ts'

/** The movements of each entry, by id. Maps iterate in the order of insertion: ids ascend. */
type Ledger = Map<number, number[]>

const line = (id: number, text: number) => `{"producerId":"${text}","entry":{"producerId":"${id}"}}\n`

const linesOf = (ledger: Ledger): string =>
  ascending(ledger)
    .flatMap(([id, texts]) => texts.map((text) => line(id, text)))
    .join('')

const ascending = (ledger: Ledger) => [...ledger].toSorted(([a], [b]) => a - b)

const entriesOf = (count: number, movements: number, from = 1): Ledger =>
  new Map(Array.from({ length: count }, (_, i) => [from + i, Array(movements).fill(0)]))

/** Renders as exports do, in chunks of this size. */
function cut(ledger: Ledger, former: readonly FormerBlock[] = noBlocks, chunkBytes = 10_000): Block[] {
  const cutter = new BlockCutter(former)
  const out = Buffer.alloc(chunkBytes)
  let at = 0
  let rows = 0
  for (const [id, texts] of ascending(ledger)) {
    if (texts.length > 0) cutter.beginEntry(id, rows, out, at)
    for (const text of texts) {
      const bytes = Buffer.from(line(id, text))
      if (at + bytes.length > out.length) {
        cutter.endChunk(out, at)
        at = 0
      }
      at += bytes.copy(out, at)
      rows++
    }
  }
  cutter.endChunk(out, at)
  // The chunk may be used for something else before the blocks are asked for.
  out.fill(0)
  return cutter.end(rows)
}

const itemsOf = (blocks: Block[]) => JSON.parse(blocksText(blocks, 'json'))

function expectDigests(blocks: Block[], ledger: Ledger): void {
  const items = itemsOf(blocks)
  checkBounds(items)
  expect(items).toEqual(plainBlocks(linesOf(ledger), items))
}

const sizesOf = (blocks: Block[]) => blocks.map(({ rows }) => rows)
const firstsOf = (blocks: Block[]) => blocks.map(({ first }) => first)

describe('without former blocks', () => {
  test('a block ends with the entry that reaches 1,000 movements', () => {
    const ledger = entriesOf(1200, 3)
    const blocks = cut(ledger)
    expect(sizesOf(blocks)).toEqual([1002, 1002, 1002, 594])
    expect(firstsOf(blocks)).toEqual([0, 335, 669, 1003])
    expectDigests(blocks, ledger)
  })

  test('an entry of thousands of movements is in one block', () => {
    const ledger: Ledger = new Map([...entriesOf(10, 2), [11, Array(5000).fill(1)], ...entriesOf(10, 2, 12)])
    const blocks = cut(ledger)
    expect(sizesOf(blocks)).toEqual([5020, 20])
    expectDigests(blocks, ledger)
  })

  test('without movements there is one empty block', () => {
    const blocks = cut(new Map([[5, []]]))
    expect(itemsOf(blocks)).toEqual([
      {
        from: '0',
        to: '9007199254740991',
        rows: 0,
        sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      },
    ])
  })

  test.each([100, 1_000, 1_000_000])('chunks of %i bytes give the same blocks', (bytes) => {
    const ledger = entriesOf(2500, 1)
    expect(cut(ledger, noBlocks, bytes)).toEqual(cut(ledger))
  })
})

/** Ten blocks of 1,000 movements: entries 1 to 10,000. */
const tenThousand = entriesOf(10_000, 1)
const tenBlocks = cut(tenThousand)

/** Renders the changed ranges only, as answers with digests do, and everything, as exports do. */
function cutAgain(ledger: Ledger, former: FormerBlock[]): Block[] {
  const ranges = changedRanges(former)
  const isRead = (id: number) => ranges.some(([from, to]) => Number(from) <= id && id <= Number(to))
  const part = cut(new Map([...ledger].filter(([id]) => isRead(id))), former)
  expect(cut(ledger, former)).toEqual(part)
  expectDigests(part, ledger)
  return part
}

const ids = (...list: number[]): EntryRange[] => list.map((id) => [String(id), String(id)])

describe('with former blocks', () => {
  test('if no entry changed, no movement is read and all blocks are kept', () => {
    const former = markChanged(tenBlocks, [])
    expect(changedRanges(former)).toEqual([])
    expect(new BlockCutter(former).end(0)).toEqual(tenBlocks)
  })

  test('only blocks with changed entries are read, and they keep their bounds', () => {
    const ledger = new Map(tenThousand).set(1500, [7]).set(2500, [7, 7]).set(9999, [7])
    const former = markChanged(tenBlocks, ids(1500, 2500, 9999))
    expect(changedRanges(former)).toEqual([
      ['1001', '3000'],
      ['9001', '9007199254740991'],
    ])
    const blocks = cutAgain(ledger, former)
    expect(firstsOf(blocks)).toEqual(firstsOf(tenBlocks))
    expect(blocks.map((block, i) => block.sha256 === tenBlocks[i]!.sha256)).toEqual(
      tenBlocks.map((_, i) => ![1, 2, 9].includes(i)),
    )
  })

  test('a range of changed entries affects every block that it touches', () => {
    const marks = (from: number, to: number) =>
      markChanged(tenBlocks, [[String(from), String(to)]]).flatMap(({ changed }, i) => (changed ? [i] : []))
    expect(marks(1000, 1000)).toEqual([0])
    expect(marks(1001, 1001)).toEqual([1])
    expect(marks(1000, 1001)).toEqual([0, 1])
    expect(marks(0, 9007199254740991)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(marks(20_000, 20_000)).toEqual([9])
  })

  test('new entries at the end make new blocks of the usual size', () => {
    const ledger = entriesOf(12_500, 1)
    const blocks = cutAgain(ledger, markChanged(tenBlocks, [['10001', '12500']]))
    expect(sizesOf(blocks)).toEqual([...Array(12).fill(1000), 500])
    expect(blocks.slice(0, 9)).toEqual(tenBlocks.slice(0, 9))
  })

  test('a block is cut only once it has grown to 2,000 movements', () => {
    const grown = (movements: number) => {
      const ledger = new Map(tenThousand).set(1300, Array(movements).fill(7))
      return sizesOf(cutAgain(ledger, markChanged(tenBlocks, ids(1300))))
    }
    expect(grown(900).slice(0, 4)).toEqual([1000, 1899, 1000, 1000])
    expect(grown(3000).slice(0, 4)).toEqual([1000, 3299, 700, 1000])
  })

  test('drafts validated inside a block are cut into blocks of the usual size', () => {
    const apart: Ledger = new Map(entriesOf(1999, 1))
    for (const [id, texts] of entriesOf(5000, 1, 50_000)) apart.set(id, texts)
    const validated = entriesOf(6000, 1, 2000)
    const before = cut(apart)
    const ledger: Ledger = new Map([...apart, ...validated])
    const blocks = cutAgain(ledger, markChanged(before, [['2000', '7999']]))
    expect(sizesOf(blocks)).toEqual([1000, 2000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 999])
  })

  test('a block that lost most movements is joined with the next when one of them changes again', () => {
    const ledger = new Map(tenThousand)
    for (let id = 1001; id <= 1900; id++) ledger.delete(id)
    const lost = cutAgain(ledger, markChanged(tenBlocks, [['1001', '1900']]))
    expect(sizesOf(lost).slice(0, 4)).toEqual([1000, 100, 1000, 1000])
    expect(cutAgain(ledger, markChanged(lost, ids(5500)))).toEqual(lost)
    for (const neighbour of [500, 1950, 2500]) {
      const joined = cutAgain(new Map(ledger).set(neighbour, [7]), markChanged(lost, ids(neighbour)))
      expect(sizesOf(joined).slice(0, 3)).toEqual([1000, 1100, 1000])
    }
  })

  test('a block that lost all movements becomes part of the one before it', () => {
    const ledger = new Map([...tenThousand].filter(([id]) => id <= 1000 || id > 2000))
    const blocks = cutAgain(ledger, markChanged(tenBlocks, [['1001', '2000']]))
    expect(firstsOf(blocks)).toEqual([0, ...firstsOf(tenBlocks).slice(2)])
    expect(blocks[0]!.sha256).toBe(tenBlocks[0]!.sha256)
    const all = cutAgain(new Map(), markChanged(tenBlocks, [['1', '10000']]))
    expect(all).toEqual(cut(new Map()))
  })
})

test('after any change, the blocks cover the ledger and have a reasonable size', () => {
  const random = new Random(12)
  for (let history = 0; history < 6; history++) {
    const ledger = entriesOf(random.integer(0, 2000), random.integer(1, 5))
    let blocks = cut(ledger)
    for (let step = 0; step < 12; step++) {
      const touched = change(ledger, random, step)
      blocks = cutAgain(ledger, markChanged(blocks, touched))
    }
    // The largest entries have 3,000 movements.
    for (const { rows } of blocks) expect(rows).toBeLessThan(2000 + 3000)
    // A small block is joined with the next at the next change beside it.
    expect(blocks.filter(({ rows }) => rows < 500).length).toBeLessThan(6)
  }
})

/** Replaces, adds and removes entries, alone and by ranges of up to 1,500. Returns their ranges. */
function change(ledger: Ledger, random: Random, step: number): EntryRange[] {
  const touched: EntryRange[] = []
  let from = random.integer(1, 3000)
  for (let n = random.integer(0, 6); n > 0; n--) {
    const to = from + (random.chance(0.2) ? random.integer(0, 1500) : 0)
    for (let id = from; id <= to; id++) {
      const movements = random.chance(0.3) ? 0 : random.integer(1, random.chance(0.002) ? 3000 : 4)
      ledger.set(id, Array(movements).fill(step))
    }
    touched.push([String(from), String(to)])
    from = to + random.integer(2, 900)
  }
  return touched
}
