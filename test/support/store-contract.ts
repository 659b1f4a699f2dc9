/** The contract of every store; each kind runs this suite. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { limits } from '../../src/config.ts'
import { type ObjectStore, StoreError } from '../../src/store/store.ts'
import { forTests } from './for-tests.ts'
import type { StoreStage } from './stages/store-stage.ts'
import { until } from './until.ts'

const part = limits.storePartBytes
const later = () => new Date(Date.now() + 3_600_000)
const earlier = () => new Date(Date.now() - 3_600_000)

let keys = 0
export const freshKey = () => `1000/export_${keys++}.json`

/** Writes uneven pieces from one buffer that is overwritten after each, as renderers do. */
export async function put(store: ObjectStore, key: string, content: Uint8Array): Promise<void> {
  const writer = await store.create(key, 'application/json')
  await writePieces(writer, content)
  await writer.complete({ bytes: content.length })
}

export async function writePieces(
  writer: { write(bytes: Uint8Array): Promise<void> },
  content: Uint8Array,
  pieceBytes = 262_139,
): Promise<void> {
  const buffer = new Uint8Array(pieceBytes)
  for (let at = 0; at < content.length; at += pieceBytes) {
    const piece = content.subarray(at, at + pieceBytes)
    buffer.set(piece)
    await writer.write(buffer.subarray(0, piece.length))
    buffer.fill(0)
  }
}

export async function download(store: ObjectStore, key: string): Promise<Buffer> {
  const response = await fetch(await store.signedUrl(key, 'a.json', 60))
  expect(response.status).toBe(200)
  return Buffer.from(await response.arrayBuffer())
}

export async function exists(store: ObjectStore, key: string): Promise<boolean> {
  const response = await fetch(await store.signedUrl(key, 'a.json', 60))
  await response.arrayBuffer()
  expect([200, 404, 410]).toContain(response.status)
  return response.status === 200
}

const keysOf = async (store: ObjectStore, before: Date) =>
  (await Array.fromAsync(store.listObjects(before))).map(({ key }) => key).sort()

/** @param open an empty store */
export function describeStore(name: string, open: () => Promise<StoreStage>): void {
  describe(name, () => {
    const stage = forTests(open)

    test('passes its check, whether it was used before or not', async () => {
      await stage.store.check()
      await stage.store.check()
    })

    describeWriting(stage)
    describeFailing(stage)
    describeLinks(stage)
    describeHousekeeping(stage)
  })
}

function describeWriting(stage: StoreStage): void {
  test.for([
    ['nothing', 0],
    ['one byte', 1],
    ['exactly a part', part],
    ['a part and a byte', part + 1],
    ['several parts', 3 * part + 12_345],
    ['more parts than are sent concurrently', 5 * part],
  ] as const)('returns what was written: %s', async ([, bytes]) => {
    const { store } = stage
    const content = randomBytes(bytes)
    const key = freshKey()
    await put(store, key, content)
    expect((await download(store, key)).equals(content)).toBe(true)
    await store.remove(key)
  })

  test('accepts single pieces larger than a part', async () => {
    const { store } = stage
    const content = randomBytes(2 * part + 7)
    const key = freshKey()
    const writer = await store.create(key, 'application/json')
    await writer.write(content)
    await writer.complete({ bytes: content.length })
    expect((await download(store, key)).equals(content)).toBe(true)
    await store.remove(key)
  })

  test('does not mix objects that are written concurrently', async () => {
    const { store } = stage
    const written = Array.from({ length: 4 }, () => ({ key: freshKey(), content: randomBytes(part + 1_000) }))
    await Promise.all(written.map(({ key, content }) => put(store, key, content)))
    for (const { key, content } of written) {
      expect((await download(store, key)).equals(content)).toBe(true)
      await store.remove(key)
    }
  })

  test('shows an object only once it is complete', async () => {
    const { store } = stage
    const key = freshKey()
    const writer = await store.create(key, 'application/json')
    await writer.write(randomBytes(part + 1))
    expect(await exists(store, key)).toBe(false)
    expect(await keysOf(store, later())).toEqual([])
    await writer.complete({ bytes: part + 1 })
    expect(await exists(store, key)).toBe(true)
    await store.remove(key)
    expect(await exists(store, key)).toBe(false)
  })

  test('creates and removes objects of one folder concurrently, and leaves nothing of the folder', async () => {
    const { store, leftovers } = stage
    const writing = Array.from({ length: 4 }, async (_, writer) => {
      for (let round = 0; round < 10; round++) {
        const key = `4000/place/${writer}-${round}.json`
        await put(store, key, randomBytes(10))
        expect(await exists(store, key)).toBe(true)
        await store.remove(key)
        await (await store.create(key, 'application/json')).abort()
      }
    })
    await Promise.all(writing)
    expect(await leftovers()).toEqual([])
  })

  test('refuses keys that lead outside', async () => {
    const { store } = stage
    for (const key of [
      '',
      '..',
      '../a',
      'a/../b',
      '/a',
      'a//b',
      'a/',
      '.a',
      'a/.b',
      'a b',
      'a\\b',
      'é',
      'a\0',
      'a%2fb',
    ])
      await expect(async () => store.create(key, 'application/json')).rejects.toThrow('not an object key')
  })
}

function describeFailing(stage: StoreStage): void {
  test('refuses to complete with a different number of bytes, and leaves nothing', async () => {
    const { store, leftovers } = stage
    for (const wrong of [-1, 1, part]) {
      const key = freshKey()
      const writer = await store.create(key, 'application/json')
      await writer.write(randomBytes(part + 10))
      await expect(writer.complete({ bytes: part + 10 + wrong })).rejects.toThrow(StoreError)
      expect(await exists(store, key)).toBe(false)
      // The writer stays failed.
      await expect(writer.write(randomBytes(1))).rejects.toThrow(StoreError)
      await expect(writer.complete({ bytes: part + 10 })).rejects.toThrow(StoreError)
      await writer.abort()
    }
    expect(await leftovers()).toEqual([])
  })

  test('leaves nothing of an aborted object, however much was written', async () => {
    const { store, leftovers } = stage
    for (const bytes of [0, 10, part, 4 * part + 1]) {
      const key = freshKey()
      const writer = await store.create(key, 'application/json')
      await writePieces(writer, randomBytes(bytes))
      await writer.abort()
      await writer.abort()
      expect(await exists(store, key)).toBe(false)
      await expect(writer.write(randomBytes(1))).rejects.toThrow(StoreError)
      await expect(writer.complete({ bytes })).rejects.toThrow(StoreError)
    }
    expect(await leftovers()).toEqual([])
  })

  test('has removed everything when the first of several aborts returns', async () => {
    const { store, leftovers } = stage
    for (let i = 0; i < 20; i++) {
      const writer = await store.create(freshKey(), 'application/json')
      await writer.write(randomBytes(10))
      const first = writer.abort()
      await writer.abort()
      expect(await leftovers()).toEqual([])
      await first
    }
  })

  test('fails a running write when the object is aborted', async () => {
    const { store, leftovers } = stage
    const writer = await store.create(freshKey(), 'application/json')
    const writing = writePieces(writer, randomBytes(6 * part)).then(
      () => 'written',
      (error) => error,
    )
    await writer.abort()
    expect(await writing).toBeInstanceOf(StoreError)
    expect(await leftovers()).toEqual([])
  })

  test('keeps a completed object, whatever its writer is asked to do afterwards', async () => {
    const { store } = stage
    const key = freshKey()
    const writer = await store.create(key, 'application/json')
    await writer.write(randomBytes(10))
    await writer.complete({ bytes: 10 })
    await writer.abort()
    await expect(writer.write(randomBytes(1))).rejects.toThrow(StoreError)
    expect(await download(store, key)).toHaveLength(10)
    await store.remove(key)
  })
}

function describeLinks(stage: StoreStage): void {
  let link: string
  const content = randomBytes(1_000)

  const status = async (url: string, headers: Record<string, string> = {}) => {
    const response = await fetch(url, { headers })
    await response.arrayBuffer()
    return response.status
  }

  test('names the downloaded file, accents and quotes included', async () => {
    const { store } = stage
    const key = freshKey()
    await put(store, key, content)
    link = await store.signedUrl(key, `Éts "L'Œuf" & Fils_JSON.json`, 600)
    const response = await fetch(link)
    expect(Buffer.from(await response.arrayBuffer()).equals(content)).toBe(true)
    expect(response.headers.get('content-disposition')).toBe(
      `attachment; filename="Ets_L_uf_Fils_JSON.json"; filename*=UTF-8''%C3%89ts%20%22L%27%C5%92uf%22%20%26%20Fils_JSON.json`,
    )
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('content-length')).toBe('1000')
    expect(response.headers.get('etag')).toMatch(/^"[^"]+"$/)
  })

  test('serves ranges of a file', async () => {
    const response = await fetch(link, { headers: { Range: 'bytes=100-199' } })
    expect(response.status).toBe(206)
    expect(response.headers.get('content-range')).toBe('bytes 100-199/1000')
    expect(Buffer.from(await response.arrayBuffer()).equals(content.subarray(100, 200))).toBe(true)
    expect(await status(link, { Range: 'bytes=1000-' })).toBe(416)
  })

  test('reports the size of a file with its first byte, and with HEAD if the signature covers it', async () => {
    const response = await fetch(link, { headers: { Range: 'bytes=0-0' } })
    expect([response.status, response.headers.get('content-range')]).toEqual([206, 'bytes 0-0/1000'])
    expect(response.headers.get('content-disposition')).toContain(`filename*=UTF-8''%C3%89ts`)
    expect(Buffer.from(await response.arrayBuffer()).equals(content.subarray(0, 1))).toBe(true)
    expect((await fetch(link, { method: 'HEAD' })).status).toBe(
      stage.settings.kind === 'filesystem' ? 200 : 403,
    )
  })

  test('accepts exactly the signed address', async () => {
    const { store } = stage
    const other = freshKey()
    await put(store, other, content)
    const tampered = [
      link.replace(/ignature=(..)/, (_, two) => `ignature=${two === 'aa' ? 'bb' : 'aa'}`),
      link.replace(/([Ee])xpires=\d*(\d)/, (found) => `${found}0`),
      link.replace('_JSON', '_TRA'),
      link.replace(/export_\d+/, other.match(/export_\d+/)![0]),
      link.split('?')[0]!,
    ]
    expect(new Set([link, ...tampered]).size).toBe(6)
    for (const url of tampered) expect([url, await status(url)]).toEqual([url, 403])
    expect(await status(link)).toBe(200)
  })

  test('lets its addresses expire', async () => {
    const { store } = stage
    const key = freshKey()
    await put(store, key, content)
    // Other tests check that the address works at first; this test may be too slow to see it.
    const url = await store.signedUrl(key, 'a.json', 1)
    await until(async () => (await status(url)) !== 200)
    expect([403, 410]).toContain(await status(url))
  })
}

function describeHousekeeping(stage: StoreStage): void {
  test('removes what exists, and ignores what does not', async () => {
    const { store } = stage
    for (const key of await keysOf(store, later())) await store.remove(key)
    await store.remove('1000/never.json')
    expect(await stage.leftovers()).toEqual([])
  })

  test('lists objects completed before a given time', async () => {
    const { store } = stage
    const all = ['2000/a.json', '2000/b/c.json', '3000/d.json']
    for (const key of all) await put(store, key, randomBytes(10))
    expect(await keysOf(store, later())).toEqual(all)
    expect(await keysOf(store, earlier())).toEqual([])
    for await (const { at } of store.listObjects(later()))
      expect(Math.abs(at.getTime() - Date.now())).toBeLessThan(3e5)
    for (const key of all) await store.remove(key)
  })

  test('clears the chosen objects of a folder, complete or not, and touches nothing else', async () => {
    const { store, leftovers } = stage
    const stay = ['5000/a/2-done.json', '5000/ab/1-done.json', '5000/1-done.json']
    for (const key of [...stay, '5000/a/1-done.json', '5000/a/b/1-done.json'])
      await put(store, key, randomBytes(10))
    const begun = ['5000/a/1-begun.json', '5000/a/1-long.json', '5000/a/2-begun.json', '5000/ab/1-begun.json']
    const writers = await Promise.all(begun.map((key) => store.create(key, 'application/json')))
    for (const writer of writers) await writer.write(randomBytes(10))
    // With parts that have arrived: more are written than are kept on the way.
    await writePieces(writers[1]!, randomBytes(5 * part))
    const seenKeys = new Set<string>()
    await store.clear('5000/a', (key) => {
      seenKeys.add(key)
      return key.includes('/1-')
    })
    expect([...seenKeys].sort()).toEqual(
      [...begun.slice(0, 3), '5000/a/1-done.json', '5000/a/2-done.json', '5000/a/b/1-done.json'].sort(),
    )
    expect(await keysOf(store, later())).toEqual(stay.toSorted())
    // The unfinished objects that were cleared have failed, and the others still complete.
    const outcomes = await Promise.allSettled([
      writers[0]!.complete({ bytes: 10 }),
      writers[1]!.complete({ bytes: 10 + 5 * part }),
      writers[2]!.complete({ bytes: 10 }),
      writers[3]!.complete({ bytes: 10 }),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled', 'fulfilled'])
    for (const outcome of outcomes.slice(0, 2))
      expect(outcome).toMatchObject({ reason: expect.any(StoreError) })
    const kept = [...stay, begun[2]!, begun[3]!].sort()
    expect(await keysOf(store, later())).toEqual(kept)
    for (const key of kept) await store.remove(key)
    expect(await leftovers()).toEqual([])
  })

  test('clears a missing folder without an error, and all of a folder if everything is chosen', async () => {
    const { store, leftovers } = stage
    await store.clear('6000/never', () => true)
    await put(store, '6000/a/done.json', randomBytes(10))
    const writers = await Promise.all(['x', 'y'].map((name) => store.create(`6000/a/${name}`, 'text/plain')))
    await store.clear('6000/a', () => true)
    expect(await leftovers()).toEqual([])
    // No object of the folder comes back, either.
    for (const writer of writers) await expect(writer.complete({ bytes: 0 })).rejects.toThrow(StoreError)
    expect(await leftovers()).toEqual([])
  })

  test('sweeps uploads begun before a given time and never finished', async () => {
    const { store, leftovers } = stage
    const done = freshKey()
    await put(store, done, randomBytes(10))
    const writers = await Promise.all([1, 2, 3].map(() => store.create(freshKey(), 'application/json')))
    for (const writer of writers) await writer.write(randomBytes(10))
    expect(await store.sweep(earlier())).toBe(0)
    expect(await store.sweep(later())).toBe(3)
    expect(await store.sweep(later())).toBe(0)
    for (const writer of writers) {
      await expect(writer.complete({ bytes: 10 })).rejects.toThrow(StoreError)
      await writer.abort()
    }
    // With parts that have arrived: more are written than are kept on the way.
    const large = await store.create(freshKey(), 'application/json')
    await writePieces(large, randomBytes(5 * part))
    expect(await store.sweep(later())).toBe(1)
    await large.abort()
    expect(await keysOf(store, later())).toEqual([done])
    await store.remove(done)
    expect(await leftovers()).toEqual([])
  })
}
