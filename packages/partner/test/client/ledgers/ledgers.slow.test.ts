/** Many ledgers through the library, from the real service, over connections that break. */
import { beforeAll, describe, expect, test } from 'vitest'
import { forTests } from '../../../../../test/support/for-tests.ts'
import type { WantedLedger } from '../../../src/client/grandlivre.ts'
import { spoil, untouched } from '../../support/client/faulty-proxy.ts'
import { setLedgersStage, twoFolders } from '../../support/client/ledgers-stage.ts'
import { libraryOf } from '../../support/client/library.ts'
import { linesOf, MemoryCopy } from '../../support/client/memory-copy.ts'

const [large, small] = twoFolders
const path = '/api/v1/mad/ledgers/changes'
const changes = /ledgers\/changes/

const stage = forTests(() => setLedgersStage(6_000, 60, 20))
untouched(() => stage.proxy)
/** The answer of the service for both folders, without a fault. */
let whole: Buffer
let truth: MemoryCopy

beforeAll(async () => {
  const answer = await fetch(`${stage.url}${path}?version=1.0.0`, {
    method: 'POST',
    headers: { ...stage.firm, 'Content-Type': 'application/json' },
    body: JSON.stringify({ ledgers: wanted }),
  })
  whole = Buffer.from(await answer.arrayBuffer())
  truth = await copied()
})

const wanted = [{ society: large }, { society: small }]
const identity = { encoding: 'identity' } as const

async function copied(copy = new MemoryCopy(), ledgers: WantedLedger[] = wanted): Promise<MemoryCopy> {
  await copy.follow(stage.ledger, ledgers, identity)
  return copy
}

const askedFor = () =>
  stage.proxy.asked.filter((each) => each.path.startsWith(path)).map(({ body }) => JSON.parse(body()).ledgers)

describe('the list', () => {
  test('has every folder with its cursor, and can be revalidated with its ETag', async () => {
    const list = await stage.ledger.ledgers({})
    expect(list.ledgers.map(({ society }) => society)).toEqual([large, small])
    expect(list.ledgers[0]).toMatchObject({
      firm: { id: '110', name: 'Firm 110' },
      cursor: truth.ledgers.get(large)!.cursor,
    })
    expect(await stage.ledger.ledgers({ after: list.etag })).toBeUndefined()
    const waiting = stage.ledger.ledgers({ after: list.etag, wait: 30 })
    await stage.change(
      `update accounts set name = name || '.' where schema_id = 100 and folder_id = 112 and id = (select min(id) from accounts where folder_id = 112)`,
    )
    const next = await waiting
    expect(next!.ledgers.map(({ cursor }) => cursor)[0]).toBe(list.ledgers[0]!.cursor)
    expect(next!.ledgers.map(({ cursor }) => cursor)[1]).not.toBe(list.ledgers[1]!.cursor)
    truth = await copied()
  })
})

test('with each encoding, a full read of all folders yields the lines that the service sent', async () => {
  for (const encoding of ['identity', 'gzip', 'zstd'] as const) {
    const copy = new MemoryCopy()
    await copy.follow(stage.ledger, undefined, { encoding })
    expect(copy.text(large) === truth.text(large)).toBe(true)
    expect(copy.text(small) === truth.text(small)).toBe(true)
  }
  const rows = linesOf(whole).filter((line) => line[0] !== 123)
  expect(Buffer.concat(rows).toString().slice(0, 4_000_000)).toContain(truth.text(large).slice(0, 10_000))
})

test('reading from a cursor brings what changed, without the unchanged tables', async () => {
  const copy = await copied()
  const { cursor, tables } = copy.ledgers.get(large)!
  await stage.change(
    `update movements set description = 'changé' where folder_id = 111 and id in (1000005, 1003000)`,
  )
  copy.parts.length = 0
  await copied(copy, [{ society: large, since: cursor, tables }])
  expect(copy.parts.map(({ kind }) => kind)).toEqual(['ledger', 'table', 'rows', 'end', 'whole'])
  expect(copy.parts[0]).toMatchObject({
    since: cursor,
    ranges: [
      ['1000000', '1000000'],
      ['1000300', '1000300'],
    ],
  })
  const bytes = copy.parts.flatMap((part) => (part.kind === 'rows' ? [part.bytes] : []))
  expect(String(Buffer.concat(bytes)).match(/changé/g)).toHaveLength(2)
  truth = await copied()
  expect(copy.text(large) === truth.text(large)).toBe(true)
})

describe('a read over answers that break', () => {
  const places = (length: number) =>
    Array.from({ length: 6 }, (_, nth) => 1 + Math.floor((nth * (length - 2)) / 5)).flatMap((at) => [
      [at, 'cut' as const],
      [at, 'end' as const],
    ]) as [number, 'cut' | 'end'][]

  test('continues after the last proven row wherever an answer breaks, and gives the same copy', async () => {
    for (const [afterBytes, kind] of places(whole.length)) {
      stage.proxy.asked.length = 0
      spoil(stage.proxy, [{ kind, afterBytes }], changes)
      const copy = await copied()
      expect([
        afterBytes,
        kind,
        copy.text(large) === truth.text(large),
        copy.text(small) === truth.text(small),
      ]).toEqual([afterBytes, kind, true, true])
      const again = askedFor().at(-1)![0]
      const entries = again.entries?.[0] ?? []
      // More than a mebibyte is kept, so most entries are not requested again.
      if (afterBytes > 3_000_000 && again.society === large && again.since)
        expect(Number(entries[0])).toBeGreaterThan(1_000_000)
    }
  }, 120_000)

  test('continues as long as each answer brings something', async () => {
    stage.proxy.fault = (asked) =>
      asked.startsWith(path) ? { kind: 'cut', afterBytes: 1_500_000 } : undefined
    const copy = await copied()
    expect(copy.text(large) === truth.text(large)).toBe(true)
    expect(askedFor().length).toBeGreaterThan(3)
  })

  test('continues even if the ledger changes before and after the row at which the answer broke', async () => {
    let answers = 0
    stage.proxy.fault = async (asked) => {
      if (!asked.startsWith(path)) return undefined
      answers += 1
      if (answers === 2)
        await stage.change(`update movements set description = 'under way' where folder_id = 111 and id in (1000001, 1005999);
          update accounts set name = name || '!' where folder_id = 111 and id = (select max(id) from accounts where folder_id = 111)`)
      return answers < 3 ? { kind: 'cut', afterBytes: 3_000_000 } : undefined
    }
    const copy = await copied()
    stage.proxy.fault = () => undefined
    truth = await copied()
    expect(copy.text(large) === truth.text(large)).toBe(true)
    expect(copy.parts.some((part) => part.kind === 'ledger' && part.resumed)).toBe(true)
  })

  test('continues within a table even if that table has returned to its earlier state', async () => {
    const copy = await copied()
    const { cursor: since, tables } = copy.ledgers.get(large)!
    const rename = (name: string) =>
      stage.change(
        `update accounts set name = ${name} where folder_id = 111 and id = (select max(id) from accounts where folder_id = 111)`,
      )
    await rename(`name || '?'`)
    let answers = 0
    stage.proxy.fault = async (asked) => {
      if (!asked.startsWith(path)) return undefined
      answers += 1
      if (answers > 1) {
        await rename(`rtrim(name, '?')`)
        return undefined
      }
      const body = (whole: Buffer) =>
        whole.subarray(0, whole.indexOf('\n', whole.indexOf('{"table":"accounts"')) + 1)
      return { kind: 'rewrite', body }
    }
    await copied(copy, [{ society: large, since, tables }])
    expect(copy.parts.some((part) => part.kind === 'ledger' && part.resumed)).toBe(true)
    expect(copy.text(large) === truth.text(large)).toBe(true)
  })

  test('requests a ledger last after three answers broke at it', async () => {
    const cut = { kind: 'cut', afterBytes: 30 } as const
    spoil(stage.proxy, [cut, cut, cut], changes)
    const copy = await copied()
    expect(copy.text(large) === truth.text(large)).toBe(true)
    expect(askedFor().map((ledgers) => ledgers[0].society)).toEqual([large, large, large, small])
  })

  test('fails with an error that names the ledger if no answer brings anything', async () => {
    const strict = libraryOf(stage.firm, stage.proxy.url, { attemptsMax: 3 })
    stage.proxy.fault = (asked) => (asked.startsWith(path) ? { kind: 'cut', afterBytes: 2000 } : undefined)
    await expect(new MemoryCopy().follow(strict, [{ society: large }], identity)).rejects.toMatchObject({
      code: 'CONNECTION-LOST',
      message: expect.stringMatching(new RegExp(`^The ledgers stopped coming at ${large}: `)),
    })
    strict.close()
  })
})

test('a missing folder is refused, and the others are read', async () => {
  const asked = [{ society: '999' }, { society: small }, { society: large, since: 'x' }]
  const copy = await copied(new MemoryCopy(), asked)
  const { parts } = copy
  expect(parts[0]).toMatchObject({ kind: 'refused', society: '999', code: 'ERR-FOLDER-NOT-FOUND' })
  expect(parts.at(-2)).toMatchObject({ kind: 'refused', society: large, code: 'ERR-VALIDATION' })
  expect(parts.at(-1)).toEqual({ kind: 'whole', ledgers: 1, refusals: 2 })
  expect(copy.text(small) === truth.text(small)).toBe(true)
})

test('an abort signal ends the read with its reason, and closes the connection', async () => {
  const reason = new Error('enough')
  const control = new AbortController()
  const read = async () => {
    for await (const part of stage.ledger.ledgerChanges(wanted, { signal: control.signal }))
      if (part.kind === 'rows') control.abort(reason)
  }
  await expect(read()).rejects.toBe(reason)
})
