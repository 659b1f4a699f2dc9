/** Streams through a proxy that spoils answers: always the bytes of the source, or an error. */
import { randomInt } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { forTests } from '../../../../test/support/for-tests.ts'
import { until } from '../../../../test/support/until.ts'
import type { LedgerStream } from '../../src/client/grandlivre.ts'
import type { Encoding } from '../../src/client/http/answer.ts'
import { errorOf, joined } from '../support/client/chunks.ts'
import { setClientStage } from '../support/client/client-stage.ts'
import { type Fault, spoil, untouched } from '../support/client/faulty-proxy.ts'

const stage = forTests(() => setClientStage(9_000))
untouched(() => stage.proxy)
let exercice: string
/** NDJSON of the year. */
let movements: Buffer
let entries: Buffer

beforeAll(async () => {
  ;({ exercice } = stage)
  movements = await stage.source(`/mad/movements?version=1.0.0&idExercice=${exercice}`)
  entries = await stage.source(`/mad/entries?version=1.0.0&idExercice=${exercice}`)
})

async function* wholeLines(stream: LedgerStream<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream.chunks()) {
    expect(chunk.at(-1), 'a chunk ends with a whole line').toBe(10)
    yield chunk
  }
}
const bytesOf = (stream: LedgerStream<unknown>): Promise<Buffer> => joined(wholeLines(stream))

async function firstOf(stream: LedgerStream<unknown>): Promise<Buffer> {
  for await (const chunk of stream.chunks()) return Buffer.from(chunk)
  throw new Error('The stream is empty')
}

const rowsOf = (ndjson: Buffer) => ndjson.toString().split('\n').length - 1
const idOf = (line: string) => JSON.parse(line).producerId as string
/** Spoils the first answers that contain lines. */
const spoilLines = (faults: Fault[]) => spoil(stage.proxy, faults, /\/(?:movements|entries)\?/)

/** Random places in the body before it is decompressed. */
function places(encoding: Encoding): number[] {
  const bytes = encoding === 'identity' ? movements.length / 4 : movements.length / 200
  return Array.from({ length: 4 }, () => randomInt(Math.floor(bytes)))
}

const spoilt = [
  ['identity', 'cut'],
  ['identity', 'end'],
  ['identity', 'stall'],
  ['gzip', 'cut'],
  ['zstd', 'cut'],
  ['zstd', 'end'],
] as const
test.each(spoilt)(
  'with %s, movements arrive complete although four answers have the fault %s at random places',
  async (encoding, kind) => {
    const faults = places(encoding).map((afterBytes): Fault => ({ kind, afterBytes }))
    const left = spoilLines(faults)
    const stream = stage.ledger({ stallMs: 150 }).movements({ exercice }, { encoding })
    const bytes = await bytesOf(stream)
    expect(bytes.equals(movements), JSON.stringify(faults)).toBe(true)
    const { rows, restarts, provedBy } = stream.progress
    expect([rows, stream.progress.bytes, restarts]).toEqual([rowsOf(movements), bytes.length, 0])
    expect(left).toEqual([])
    const [isInParts, isInPartsAtOnce] = resumed()
    if (isInPartsAtOnce || (isInParts && kind !== 'end')) {
      // No digest came for the parts that were cut, so only the number of rows could be compared.
      expect(provedBy).toBe('rows')
    } else {
      // No line had come before the cuts. An end without trailers makes the client ask for blocks.
      expect(provedBy).toBe(kind === 'end' ? 'blocks' : 'trailers')
    }
  },
)

/** Whether any answer began after lines that had come, and whether the second answer did. */
function resumed(): [inParts: boolean, atOnce: boolean] {
  const answers = stage.proxy.asked.filter(({ headers }) => headers.accept === 'application/x-ndjson')
  const after = answers.map(({ path }) => /[?&]after=/.test(path))
  return [after.includes(true), after[1] === true]
}

describe.each(['identity', 'zstd'] as const)('with %s', (encoding) => {
  test('entries arrive complete despite answers that are cut or end early', async () => {
    const faults = places(encoding).map(
      (afterBytes, i): Fault => ({ kind: i % 2 ? 'cut' : 'end', afterBytes }),
    )
    spoilLines(faults)
    const stream = stage.ledger().entries({ exercice }, { encoding })
    expect((await bytesOf(stream)).equals(entries), JSON.stringify(faults)).toBe(true)
    expect(stream.progress.provedBy).toBe(resumed()[0] ? 'end' : 'trailers')
  })

  test('without trailers, the row count proves movements, blocks prove later movements, and an empty rest proves entries', async () => {
    stage.proxy.fault = () => ({ kind: 'noTrailers' })
    const ledger = stage.ledger()
    const all: [LedgerStream<unknown>, Buffer, string][] = [
      [ledger.movements({ exercice }, { encoding }), movements, 'rows'],
      [ledger.movements({ exercice }, { encoding }), movements, 'blocks'],
      [ledger.entries({ exercice }, { encoding }), entries, 'end'],
    ]
    for (const [stream, expected, provedBy] of all) {
      expect((await bytesOf(stream)).equals(expected)).toBe(true)
      expect(stream.progress.provedBy).toBe(provedBy)
    }
    // The second stream read the blocks first, and told the service to hash nothing.
    const asked = stage.proxy.asked.filter(({ path }) => path.includes('/movements'))
    expect(asked.map(({ path }) => path.includes('blocks'))).toEqual([false, true, true, false])
    expect(asked.at(-1)!.headers['want-content-digest']).toBe('sha-256=0')
  })
})

test('entries are requested again until they are complete if answers end early without trailers', async () => {
  // The first 2,000 bytes of the compressed body decompress to nothing.
  stage.proxy.fault = (_, nth) => (nth < 4 ? { kind: 'end', afterBytes: 2_000 } : undefined)
  const stream = stage.ledger().entries({ exercice }, { encoding: 'zstd' })
  expect((await bytesOf(stream)).equals(entries)).toBe(true)
})

test.each(['movements', 'entries'] as const)(
  'bodies of %s that end early after a whole line are not accepted as complete',
  async (streamed) => {
    const expected = streamed === 'movements' ? movements : entries
    const ends = [1_000_000, 2_000_000, 3_000_000].map((from) => expected.indexOf(10, from) + 1)
    // Each answer begins where the one before it ended.
    const left = spoilLines(ends.map((end, i) => ({ kind: 'end', afterBytes: end - (ends[i - 1] ?? 0) })))
    const stream = stage.ledger()[streamed]({ exercice }, { encoding: 'identity' })
    expect((await bytesOf(stream)).equals(expected)).toBe(true)
    expect(left).toEqual([])
  },
)

test('with proof by blocks, a cut stream is compared block by block', async () => {
  spoilLines([
    { kind: 'cut', afterBytes: 2_000_000 },
    { kind: 'end', afterBytes: 3_000_000 },
  ])
  const stream = stage.ledger().movements({ exercice }, { encoding: 'identity', proof: 'blocks' })
  expect((await bytesOf(stream)).equals(movements)).toBe(true)
  expect(stream.progress.provedBy).toBe('blocks')
})

describe.each(['trailers', 'blocks'] as const)('proof by %s', (proof) => {
  test('detects one wrong bit', async () => {
    spoilLines([{ kind: 'flip', at: 1_000_000 }])
    const stream = stage.ledger().movements({ exercice }, { encoding: 'identity', proof })
    expect(await errorOf(bytesOf(stream))).toMatchObject({ code: 'NOT-PROVEN' })
    if (proof === 'blocks') expect(stream.progress.bytes).toBeLessThan(3_000_000)
  })

  test.each([1, 4_000])('resumes after %i rows of an earlier process', async (kept) => {
    const first = stage.ledger().movements({ exercice }, { proof })
    await firstOf(first)
    const lines = movements.toString().split('\n').slice(0, kept)
    const start = Buffer.from(`${lines.join('\n')}\n`)
    const resume = { after: idOf(lines.at(-1)!), etag: first.progress.etag!, rows: lines.length }
    const second = stage.ledger().movements({ exercice }, { proof, resume })
    expect(Buffer.concat([start, await bytesOf(second)]).equals(movements)).toBe(true)
    expect(second.progress).toMatchObject({ rows: rowsOf(movements), connections: 1, provedBy: 'rows' })
  })

  test('detects that an earlier process kept another number of rows', async () => {
    const first = stage.ledger().movements({ exercice })
    const after = idOf((await firstOf(first)).toString().split('\n')[9]!)
    const resume = { after, etag: first.progress.etag!, rows: 9 }
    const second = stage.ledger().movements({ exercice }, { proof, resume, encoding: 'identity' })
    expect(await errorOf(bytesOf(second))).toMatchObject({ code: 'NOT-PROVEN' })
  })
})

describe('if a proxy drops or changes trailers', () => {
  const [rowCount, sha256] = ['x-row-count', 'x-content-sha256'] as const
  const zeros = '0'.repeat(64)
  /** Each way, and what then proves movements and entries; undefined if nothing does. */
  const ways: [string, { dropped?: string[]; changed?: Record<string, string> }, (string | undefined)[]][] = [
    ['the SHA-256 is dropped', { dropped: [sha256] }, [undefined, undefined]],
    ['the row count is dropped', { dropped: [rowCount] }, ['rows', 'end']],
    ['the SHA-256 is wrong', { changed: { [sha256]: zeros } }, [undefined, undefined]],
    [
      'only a wrong SHA-256 arrives',
      { dropped: [rowCount], changed: { [sha256]: zeros } },
      [undefined, undefined],
    ],
    ['the row count is wrong', { changed: { [rowCount]: '1' } }, [undefined, undefined]],
  ]
  describe.each(ways)('%s', (_, fault, proofs) => {
    test.each(['movements', 'entries'] as const)(
      '%s are refused or proven in another way',
      async (streamed) => {
        spoilLines([{ kind: 'trailers', ...fault }])
        const ledger = stage.ledger()
        const stream = ledger[streamed]({ exercice }, { encoding: 'identity' })
        const error = await errorOf(bytesOf(stream))
        const provedBy = proofs[streamed === 'movements' ? 0 : 1]
        expect(stream.progress.provedBy).toBe(provedBy)
        if (provedBy === undefined) expect(error).toMatchObject({ code: 'NOT-PROVEN' })
        else expect(error).toBeUndefined()
      },
    )
  })

  test('a changed digit without its SHA-256 is refused, and from then on blocks detect it', async () => {
    const at = movements.indexOf('"debit":') + '"debit":'.length
    for (const streamed of ['movements', 'entries'] as const) {
      const ledger = stage.ledger()
      const fault: Fault = { kind: 'trailers', dropped: [sha256], at }
      spoilLines([fault, fault])
      const first = ledger[streamed]({ exercice }, { encoding: 'identity' })
      expect(await errorOf(bytesOf(first))).toMatchObject({
        code: 'NOT-PROVEN',
        message: expect.stringContaining('X-Row-Count came without X-Content-SHA256'),
      })
      const second = ledger[streamed]({ exercice }, { encoding: 'identity' })
      expect(await errorOf(bytesOf(second))).toMatchObject({ code: 'NOT-PROVEN' })
      expect([first.progress.provedBy, second.progress.provedBy]).toEqual([undefined, undefined])
      if (streamed === 'entries') continue
      const third = ledger.movements({ exercice }, { encoding: 'identity' })
      expect((await bytesOf(third)).equals(movements)).toBe(true)
      expect(third.progress.provedBy).toBe('blocks')
    }
  })
})

test('a compressed body that was damaged in transit is not treated as a cut one', async () => {
  const travelling = Math.floor(gzipSync(movements).length / 3)
  for (const place of [1, 1.5, 2]) {
    spoilLines([{ kind: 'flip', at: Math.floor(travelling * place) }])
    const stream = stage.ledger().movements({ exercice }, { encoding: 'gzip' })
    await expect(bytesOf(stream)).rejects.toMatchObject({ code: 'NOT-PROVEN' })
  }
})

test.each([
  { after: '', etag: '"1"', rows: 10 },
  { after: '12', etag: '', rows: 10 },
  { after: '12', etag: '"1"', rows: 0 },
])('resume with %o is refused', (resume) => {
  expect(() => stage.ledger().entries({ exercice }, { resume })).toThrow('resume')
})

test('a page that the service did not send yields no line', async () => {
  const body = '<html>\n<p>Sign in first</p>\n</html>\n'
  const page: Fault = { kind: 'answer', status: 200, headers: { 'Content-Type': 'text/html' }, body }
  for (const streamed of ['movements', 'entries'] as const) {
    spoilLines([page])
    const stream = stage.ledger()[streamed]({ exercice })
    await expect(firstOf(stream)).rejects.toMatchObject({ code: 'UNEXPECTED-ANSWER', status: 200 })
  }
})

test('empty answers do not prove that there are no entries', async () => {
  stage.proxy.fault = () => ({ kind: 'end', afterBytes: 0 })
  const stream = stage.ledger({ attemptsMax: 3 }).entries({ exercice })
  await expect(bytesOf(stream)).rejects.toMatchObject({ code: 'CONNECTION-LOST' })
  stage.proxy.fault = () => ({ kind: 'noTrailers' })
  const none = stage.ledger().entries({ startDate: '1990-01-01', endDate: '1990-01-31' })
  expect([(await bytesOf(none)).length, none.progress.provedBy]).toEqual([0, 'end'])
})

test('a stream that fails before its first line leaves no connection open', async () => {
  const first = stage.ledger().movements({ exercice })
  await firstOf(first)
  const resume = { after: idOf(movements.toString().split('\n')[9]!), etag: first.progress.etag!, rows: 1e6 }
  const second = stage.ledger().movements({ exercice }, { proof: 'blocks', resume })
  await expect(bytesOf(second)).rejects.toMatchObject({ code: 'NOT-PROVEN' })
  await until(() => stage.proxy.open() === 0)
})

test('the items match the lines', async () => {
  spoilLines([{ kind: 'cut', afterBytes: 1_000_000 }])
  const items = []
  for await (const movement of stage.ledger().movements({ exercice }, { encoding: 'identity' }))
    items.push(movement)
  const text = `${items.map((movement) => JSON.stringify(movement)).join('\n')}\n`
  expect(text === movements.toString()).toBe(true)
})

test('the error of a stream that is cut repeatedly without a new row states how many rows came', async () => {
  let answers = 0
  stage.proxy.fault = (path) => {
    if (path.includes('blocks')) return undefined
    answers += 1
    return { kind: 'cut', afterBytes: answers === 1 ? 100_000 : 10 }
  }
  const stream = stage.ledger({ attemptsMax: 4 }).movements({ exercice }, { encoding: 'identity' })
  const error = await errorOf(bytesOf(stream))
  expect(error).toMatchObject({ code: 'CONNECTION-LOST', status: 0 })
  expect(String(error)).toContain(`The transfer stopped after ${stream.progress.rows} rows`)
  expect([answers, stream.progress.rows > 50]).toEqual([4, true])
})

test('an abort closes the connection, frees the slot and throws the reason of the signal', async () => {
  const leaving = new AbortController()
  const stream = stage.ledger().movements({ exercice }, { signal: leaving.signal, encoding: 'identity' })
  const reason = new Error('no longer wanted')
  const reading = (async () => {
    for await (const _ of stream.chunks()) leaving.abort(reason)
  })()
  await expect(reading).rejects.toBe(reason)
  await until(() => stage.proxy.open() === 0)
  expect(stage.proxy.asked).toHaveLength(1)
})

test.each(['identity', 'gzip', 'zstd'] as const)(
  'leaving the loop closes the connection, with %s',
  async (encoding) => {
    spoilLines([{ kind: 'stall', afterBytes: encoding === 'identity' ? 300_000 : 30_000 }])
    for await (const _ of stage.ledger().movements({ exercice }, { encoding }).chunks()) break
    await until(() => stage.proxy.open() === 0)
  },
)

test('a slow reader does not count as a stall', async () => {
  const stream = stage.ledger({ stallMs: 500 }).movements({ exercice }, { encoding: 'identity' })
  const chunks: Uint8Array[] = []
  for await (const chunk of stream.chunks()) {
    if (chunks.push(chunk) === 3) await new Promise((resolve) => setTimeout(resolve, 600))
  }
  expect(Buffer.concat(chunks).equals(movements)).toBe(true)
  expect(stream.progress.connections).toBe(1)
})

test('a stream can be read only once', async () => {
  const stream = stage.ledger().movements({ exercice })
  for await (const _ of stream) break
  await expect(stream.chunks().next()).rejects.toThrow('This stream was read before')
})

const wrong: [string, () => unknown, string][] = [
  ['proof: blocks of entries', () => stage.ledger().entries({ exercice }, { proof: 'blocks' }), 'proof'],
  [
    'a misspelt filter',
    () => stage.ledger().movements({ exercice, leterring: 'none' } as { exercice: string }),
    'leterring',
  ],
]
test.each(wrong)('the error for %s names the parameter', (_, call, named) => {
  expect(call).toThrow(
    expect.objectContaining({ code: 'INVALID-OPTION', message: expect.stringContaining(named) }),
  )
})
