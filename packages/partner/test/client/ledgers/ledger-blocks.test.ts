/** Digests of many ledgers through the library, from the real service and from a service that lies. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { forTests } from '../../../../../test/support/for-tests.ts'
import type { LedgerBlocks } from '../../../src/client/grandlivre.ts'
import { spoil, untouched } from '../../support/client/faulty-proxy.ts'
import { setLedgersStage, twoFolders } from '../../support/client/ledgers-stage.ts'
import { linesOf, MemoryCopy } from '../../support/client/memory-copy.ts'

const stage = forTests(() => setLedgersStage(0))
untouched(() => stage.proxy)
const wanted = [...twoFolders]

const read = async (societies?: string[]) =>
  Array.fromAsync(stage.ledger.ledgerBlocks(societies, { encoding: 'identity' }))

test('the digests match the rows of the ledger', async () => {
  const copy = new MemoryCopy()
  await copy.follow(stage.ledger)
  const found = await read()
  expect(found.map(({ society }) => society)).toEqual(wanted)
  for (const part of found as LedgerBlocks[]) {
    const { cursor, tables, rows } = copy.ledgers.get(part.society)!
    expect(part).toMatchObject({ kind: 'blocks', cursor, tables })
    const movements = Buffer.concat(rows.get('movements')!)
    expect(part.rows).toBe(rows.get('movements')!.length)
    if (part.blocks.length === 1)
      expect(part.blocks[0]!.sha256).toBe(createHash('sha256').update(movements).digest('hex'))
  }
})

test('a missing folder is refused at its position in the list', async () => {
  const [first, second] = await read(['999', wanted[0]!])
  expect(first).toMatchObject({ kind: 'refused', society: '999', code: 'ERR-FOLDER-NOT-FOUND' })
  expect(second).toMatchObject({ kind: 'blocks', society: wanted[0] })
})

test('after a broken answer the client asks again, from the ledger at which it broke', async () => {
  const all = await read(wanted)
  stage.proxy.asked.length = 0
  const body = (whole: Buffer) => whole.subarray(0, linesOf(whole)[0]!.length + 20)
  spoil(stage.proxy, [{ kind: 'rewrite', body }])
  expect(await read(wanted)).toEqual(all)
  expect(stage.proxy.asked.map(({ body }) => JSON.parse(body()).ledgers)).toEqual([
    wanted.map((society) => ({ society })),
    [{ society: wanted[1] }],
  ])
})

const sha256 = 'a'.repeat(64)
const lies: [string, (line: LedgerBlocks) => object, RegExp][] = [
  ['another folder', () => ({ society: '112' }), /those of 112 came in their place/],
  ['an invalid cursor', () => ({ cursor: '' }), /cursor is no cursor/],
  ['another digest', () => ({ digest: sha256 }), /the blocks differ from their digest/],
  [
    'another block',
    ({ blocks }) => ({ blocks: [{ ...blocks[0], sha256 }, ...blocks.slice(1)] }),
    /differ from their digest/,
  ],
  ['more rows', ({ rows }) => ({ rows: rows + 1 }), /rows, and the line says/],
  [
    'blocks backwards',
    ({ blocks }) => ({ blocks: [{ ...blocks[0], from: '9', to: '1' }] }),
    /not ascending and disjoint/,
  ],
  ['no tables', () => ({ tables: {} }), /tables.folders is no SHA-256/],
  ['no blocks', () => ({ blocks: null }), /blocks is no list/],
]
test.each(lies)('digests with %s are refused', async (_, members, message) => {
  stage.proxy.fault = () => ({
    kind: 'rewrite',
    body: (whole) => {
      const line = JSON.parse(String(linesOf(whole)[0]))
      return Buffer.from(`${JSON.stringify({ ...line, ...members(line) })}\n`)
    },
  })
  await expect(read([wanted[0]!])).rejects.toMatchObject({
    code: 'NOT-PROVEN',
    message: expect.stringMatching(message),
  })
})

test('an endless line is refused before it fills the memory', async () => {
  let sent = 0
  const body = function* () {
    for (; sent < 500; sent += 1) yield Buffer.alloc(1024 * 1024, sent === 0 ? '{' : 'a')
  }
  stage.proxy.fault = () => ({ kind: 'rewrite', body })
  await expect(read([wanted[0]!])).rejects.toMatchObject({
    code: 'UNEXPECTED-ANSWER',
    message: 'A line has more than 16777216 bytes',
  })
  expect(sent).toBeLessThan(60)
})

test('an answer with more ledgers than were requested is refused', async () => {
  stage.proxy.fault = () => ({ kind: 'rewrite', body: (whole) => Buffer.concat([whole, whole]) })
  await expect(read([wanted[0]!])).rejects.toMatchObject({ code: 'NOT-PROVEN' })
})

test('an empty answer counts as a lost connection', async () => {
  stage.proxy.fault = () => ({ kind: 'rewrite', body: () => Buffer.alloc(0) })
  await expect(read([wanted[0]!])).rejects.toMatchObject({
    code: 'CONNECTION-LOST',
    message: 'The digests stopped coming at ledger 111: The answer ended before the last ledger',
  })
})
