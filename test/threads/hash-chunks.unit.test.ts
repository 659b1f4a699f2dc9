/** The SHA-256 of chunks on their way through another port, as in a hash thread. */
import { hash as hashOf, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { MessageChannel } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { limits } from '../../src/config.ts'
import { ChannelReader, ChannelWriter, hashChunks } from '../../src/threads/channel.ts'
import { ThreadHash } from '../../src/threads/thread-hash.ts'
import { until } from '../support/until.ts'
import { messagesArrived, noPortsLeft, transfer } from './ports.ts'

type Summary = { written: number; sha256?: string }

noPortsLeft()

/** A channel with a hash thread between its ends. */
function hashedPair() {
  const reader = new ChannelReader<object, Summary>()
  const { port1, port2 } = new MessageChannel()
  const [from, to] = [transfer(port1), transfer(reader.threadPort)]
  const hashing = hashChunks({ from, to })
  const writer = new ChannelWriter<object, Summary>(transfer(port2), 1000)
  return { reader, writer, hashing, from }
}

function hashInThread() {
  const { port1, port2 } = new MessageChannel()
  const from = transfer(port1)
  return { hash: new ThreadHash(transfer(port2)), hashing: hashChunks({ from }), from }
}

const sha256 = (chunks: Uint8Array[]) => hashOf('sha256', Buffer.concat(chunks))

test('a channel through a hash thread delivers the bytes and their digest, and returns the buffers', async () => {
  const { reader, writer, hashing } = hashedPair()
  const sent = Array.from({ length: 40 }, () => new Uint8Array(randomBytes(100)))
  const writing = (async () => {
    let reused = 0
    for (const bytes of sent) {
      const chunk = writer.buffer(bytes.length)
      if (chunk.some((byte) => byte !== 0)) reused++
      chunk.set(bytes)
      await writer.write(chunk)
    }
    writer.end({ written: sent.length })
    return reused
  })()
  writer.head({})
  await reader.head()
  const read: number[] = []
  let last: Uint8Array | undefined
  for (let chunk = await reader.read(); chunk; chunk = await reader.read()) {
    read.push(...chunk)
    if (last) reader.recycle(last)
    last = chunk
    await messagesArrived()
  }
  expect(await writing, 'buffers that came back').toBeGreaterThan(0)
  await hashing
  expect(read).toEqual(sent.flatMap((bytes) => [...bytes]))
  expect(reader.summary).toEqual({ written: sent.length, sha256: sha256(sent) })
})

test('a writer stops at the window, however fast the hash thread is', async () => {
  const { reader, writer, hashing } = hashedPair()
  let written = 0
  const writing = (async () => {
    for (; written < 40; written++) await writer.write(new Uint8Array(100))
    writer.end({ written })
  })()
  await messagesArrived()
  expect(written).toBe(9)
  while (await reader.read());
  await Promise.all([writing, hashing])
})

test('an error, a cancel and the death of any thread reach the other threads', async () => {
  const failed = hashedPair()
  failed.writer.fail(new Error('no rows'))
  await expect(failed.reader.read()).rejects.toThrow('no rows')
  await failed.hashing

  const cancelled = hashedPair()
  const writing = expect(cancelled.writer.write(new Uint8Array(2000))).rejects.toThrow('cancelled')
  cancelled.reader.cancel()
  await Promise.all([writing, cancelled.hashing])

  const died = hashedPair()
  await died.writer.write(new Uint8Array(10))
  died.from.close()
  await expect(
    (async () => {
      while (await died.reader.read());
    })(),
  ).rejects.toThrow('ended without finishing')
  await until(() => died.writer.signal.aborted)
  await died.hashing
})

test('chunks that stay in the thread are hashed after use, even large ones and constants', async () => {
  const { hash, hashing } = hashInThread()
  const constant = new Uint8Array(randomBytes(50))
  // This buffer shares its memory with other buffers.
  const pooled = Buffer.from('pooled') as Uint8Array<ArrayBuffer>
  const sent: Uint8Array[] = []
  const update = async (chunk: Uint8Array<ArrayBuffer>) => {
    sent.push(chunk.slice())
    await hash.update(chunk)
  }
  await update(constant)
  await update(pooled)
  for (const bytes of [1000, limits.chunkBytes, 20 * 1024 * 1024, 1000, 1000, 1000]) {
    const buffer = hash.buffer(bytes)
    const chunk = buffer.subarray(0, bytes)
    chunk.set(randomBytes(bytes))
    await update(chunk)
    expect(buffer.byteLength, 'the buffer is away').toBe(0)
    await messagesArrived()
  }
  expect(await hash.digest('hex')).toBe(sha256(sent))
  expect([constant.byteLength, pooled.toString()]).toEqual([50, 'pooled'])
  expect(
    hash.buffer().some((byte) => byte !== 0),
    'a buffer that came back',
  ).toBe(true)
  hash.close()
  await hashing
})

test('a hash thread that takes no chunks is sent at most a window, and its death fails the hash', async () => {
  const { port1, port2 } = new MessageChannel()
  const port = transfer(port2)
  const hash = new ThreadHash(port)
  let sent = 0
  const sending = (async () => {
    for (; sent < 40; sent++) await hash.update(hash.buffer())
  })()
  sending.catch(() => {})
  await messagesArrived()
  expect((sent + 1) * limits.chunkBytes).toBe(limits.channelWindowBytes)
  const closed = once(port, 'close')
  port1.close()
  await expect(sending).rejects.toThrow('the hash thread ended')
  await expect(hash.digest('hex')).rejects.toThrow('the hash thread ended')
  await closed
})
