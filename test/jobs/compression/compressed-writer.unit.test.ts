/** What the compressing writer does with its object in the store, in success and in failure. */
import { randomFillSync } from 'node:crypto'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { compressedWriter } from '../../../src/jobs/compressed-writer.ts'
import { StoreError } from '../../../src/store/store.ts'
import { forTests } from '../../support/for-tests.ts'
import { openFolderStage } from '../../support/stages/store-stage.ts'
import { download, exists, writePieces } from '../../support/store-contract.ts'

const stage = forTests(openFolderStage)

/** Half of the content is noise, so that there are many compressed pieces. */
const content = Buffer.concat([randomFillSync(Buffer.alloc(3_000_000)), Buffer.alloc(3_000_000, 'ledger')])

describe.each([
  ['gzip', gunzipSync],
  ['zstd', zstdDecompressSync],
] as const)('%s', (compression, decompress) => {
  let keys = 0
  async function begin() {
    const key = `1000/${compression}_${keys++}.json`
    return {
      key,
      writer: compressedWriter(await stage.store.create(key, 'application/json'), compression),
    }
  }

  async function put(bytes: Buffer, pieceBytes?: number): Promise<Buffer> {
    const { key, writer } = await begin()
    await writePieces(writer, bytes, pieceBytes)
    await writer.complete({ bytes: bytes.length })
    return download(stage.store, key)
  }

  test('the object holds one compressed frame, whose bytes depend only on the content', async () => {
    // Parquet arrives from a pipe, in pieces whose sizes differ from time to time.
    const [one, other] = await Promise.all([put(content), put(content, 65_536)])
    expect(decompress(one).equals(content)).toBe(true)
    expect(one.equals(other)).toBe(true)
    expect(decompress(await put(Buffer.alloc(0)))).toHaveLength(0)
  })

  test('the object is not completed if the content does not have the declared length', async () => {
    const { key, writer } = await begin()
    await writePieces(writer, content)
    await expect(writer.complete({ bytes: content.length + 1 })).rejects.toThrow('6000000 of 6000001 bytes')
    await writer.abort()
    expect(await exists(stage.store, key)).toBe(false)
  })

  test('an abort ends a running write and leaves no object', async () => {
    const { key, writer } = await begin()
    await writePieces(writer, content)
    const writing = writer.write(content)
    const aborted = writer.abort()
    await expect(writing).rejects.toThrow('aborted')
    await aborted
    await expect(writer.write(content)).rejects.toThrow()
    await expect(writer.complete({ bytes: 0 })).rejects.toThrow()
    expect(await exists(stage.store, key)).toBe(false)
    expect(await stage.leftovers()).not.toContainEqual(expect.stringContaining('.part'))
  })

  test('even a small write is refused after an abort', async () => {
    const { writer } = await begin()
    await writePieces(writer, content)
    await writer.abort()
    await expect(writer.write(content.subarray(0, 10))).rejects.toThrow('aborted')
  })

  test('a failure of the store ends the write, and every later one', async () => {
    const object = await stage.store.create(`1000/${compression}_broken.json`, 'application/json')
    const writer = compressedWriter(object, compression)
    await writePieces(writer, content)
    // The store refuses every write after an abort.
    await object.abort()
    await expect(writePieces(writer, content)).rejects.toThrow(StoreError)
    await expect(writer.write(content)).rejects.toThrow(StoreError)
    await expect(writer.complete({ bytes: 2 * content.length })).rejects.toThrow(StoreError)
    await writer.abort()
  })
})
