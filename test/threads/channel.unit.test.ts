/** Bytes from a thread: backpressure, cancellation and every kind of end, over real threads and ports. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { beforeEach, describe, expect, test } from 'vitest'
import { limits } from '../../src/config.ts'
import { AppError } from '../../src/errors.ts'
import { ChannelReader, ChannelWriter, reuseBuffers } from '../../src/threads/channel.ts'
import { until } from '../support/until.ts'
import { messagesArrived, noPortsLeft, transfer } from './ports.ts'

noPortsLeft()

type Head = { version: string }
type Summary = { written: number }

/** A channel whose two ends are both in this thread. */
function pair(windowBytes: number, buffers: ArrayBuffer[] = []) {
  const reader = new ChannelReader<Head, Summary>()
  const threadPort = transfer(reader.threadPort)
  const writer = new ChannelWriter<Head, Summary>(threadPort, windowBytes, buffers)
  return { reader, writer, threadPort }
}

/** Reads to the end. */
async function drain(reader: ChannelReader<Head, Summary>): Promise<void> {
  while (await reader.read());
}

test('head, chunks and summary arrive in order', async () => {
  const { reader, writer } = pair(100)
  const reading = (async () => {
    expect(await reader.head()).toEqual({ version: '1' })
    const bytes = []
    for (let chunk = await reader.read(); chunk; chunk = await reader.read()) bytes.push(...chunk)
    return bytes
  })()
  writer.head({ version: '1' })
  for (let i = 0; i < 50; i++) await writer.write(Uint8Array.from([i, i + 1]))
  writer.end({ written: 50 })
  expect(await reading).toEqual(Array.from({ length: 50 }, (_, i) => [i, i + 1]).flat())
  expect(reader.summary).toEqual({ written: 50 })
  expect(await reader.read()).toBeUndefined()
})

test('a writer stops at the window until the reader reads', async () => {
  const { reader, writer } = pair(1000)
  let written = 0
  const writing = (async () => {
    for (; written < 40; written++) await writer.write(new Uint8Array(100))
    writer.end({ written })
  })()
  await messagesArrived()
  // The tenth chunk used up the credit: it has been sent, and its write waits.
  expect(written).toBe(9)
  await reader.read()
  await messagesArrived()
  expect(written).toBe(10)
  for (let i = 0; i < 5; i++) await reader.read()
  await messagesArrived()
  expect(written).toBe(15)
  await drain(reader)
  await writing
  expect(reader.summary).toEqual({ written: 40 })
})

test('a chunk larger than the window passes, and its credit returns', async () => {
  const { reader, writer } = pair(1000)
  let written = 0
  const writing = (async () => {
    for (const size of [5000, 100, 100]) {
      await writer.write(new Uint8Array(size))
      written++
    }
    writer.end({ written })
  })()
  await messagesArrived()
  expect(written).toBe(0)
  expect((await reader.read())?.length).toBe(5000)
  await messagesArrived()
  expect(written).toBe(3)
  await drain(reader)
  await writing
})

test('a cancel rejects a waiting write and every later one', async () => {
  const { reader, writer } = pair(100)
  const waiting = writer.write(new Uint8Array(200))
  reader.cancel()
  reader.cancel()
  await expect(waiting).rejects.toThrow('cancelled')
  expect(writer.signal.aborted).toBe(true)
  await expect(writer.write(new Uint8Array(1))).rejects.toThrow('cancelled')
  await expect(reader.read()).rejects.toThrow('cancelled')
  await expect(reader.head()).rejects.toThrow('cancelled')
  expect(reader.cancelled).toBe(true)
  writer.fail(new Error('late'))
})

test('a cancel rejects a waiting read', async () => {
  const { reader, writer } = pair(100)
  const reading = expect(reader.read()).rejects.toThrow('cancelled')
  reader.cancel()
  await reading
  await until(() => writer.signal.aborted)
})

test('an error crosses the channel with its code, headers, issues and ids, and overtakes chunks', async () => {
  const { reader, writer } = pair(1000)
  await writer.write(new Uint8Array(10))
  const cause = new Error('the reason')
  const details = { issues: [{ parameter: 'after', message: 'is unknown' }], producerIds: ['3'] }
  writer.fail(
    new AppError('ERR-VALIDATION', { message: 'no', ...details, headers: { 'Retry-After': '3' }, cause }),
  )
  await messagesArrived()
  const error = await reader.read().catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(AppError)
  expect(error).toMatchObject({
    code: 'ERR-VALIDATION',
    message: 'no',
    ...details,
    headers: { 'Retry-After': '3' },
  })
  expect((error as Error).stack).toContain('the reason')
  await expect(reader.head()).rejects.toBe(error)
})

test('a database error crosses the channel with its code, but without the row that it quotes', async () => {
  const { reader, writer } = pair(1000)
  const row = { detail: 'Failing row contains (Dupont)', where: 'COPY entries, line 1: "Dupont"' }
  const cause = Object.assign(new Error('violates check'), row, { code: '23514' })
  writer.fail(new Error('the export failed', { cause }))
  const { stack } = (await reader.head().catch((thrown: unknown) => thrown)) as Error
  expect(stack).toMatch(/the export failed[\s\S]*violates check[\s\S]*23514/)
  expect(stack).not.toContain('Dupont')
})

test('any error other than an AppError crosses the channel as a plain error', async () => {
  for (const thrown of [new TypeError('odd'), 'odd']) {
    const { reader, writer } = pair(1000)
    writer.fail(thrown)
    const error = await reader.head().catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(Error)
    expect(error).not.toBeInstanceOf(AppError)
    expect((error as Error).message).toBe('odd')
  }
})

test('a port that closes without an end message is an error', async () => {
  const { reader, writer, threadPort } = pair(1000)
  await writer.write(new Uint8Array(10))
  threadPort.close()
  await expect(
    (async () => {
      await drain(reader)
    })(),
  ).rejects.toThrow('ended without finishing')
})

test('the death of the thread is an error, before and after the first byte', async () => {
  for (const code of ['', `port.postMessage({ kind: 'head', head: {} });`]) {
    const reader = new ChannelReader<Head, Summary>()
    const thread = new Worker(
      `require('worker_threads').parentPort.on('message', ({ port }) => { ${code} port.on('message', () => {}) })`,
      { eval: true },
    )
    const online = once(thread, 'online')
    thread.postMessage({ port: reader.threadPort }, [reader.threadPort])
    if (code !== '') expect(await reader.head()).toEqual({})
    const reading = expect(reader.read()).rejects.toThrow('ended without finishing')
    await online
    await thread.terminate()
    await reading
  }
})

test('unread chunks can be read after the end', async () => {
  const { reader, writer } = pair(1000)
  for (let i = 0; i < 3; i++) await writer.write(Uint8Array.from([i]))
  writer.end({ written: 3 })
  await messagesArrived()
  expect([await reader.read(), await reader.read(), await reader.read(), await reader.read()]).toEqual([
    Uint8Array.from([0]),
    Uint8Array.from([1]),
    Uint8Array.from([2]),
    undefined,
  ])
})

test('a returned buffer is reused, unless it is too small', async () => {
  const { reader, writer } = pair(10_000)
  const writeAndReturn = async (bytes: number) => {
    const buffer = writer.buffer(bytes)
    buffer.fill(7)
    await writer.write(buffer)
    const chunk = await reader.read()
    reader.recycle(chunk!)
    // The next credit returns the buffer.
    await writer.write(new Uint8Array(1))
    await reader.read()
    expect(chunk!.buffer.byteLength, 'the buffer is detached').toBe(0)
    await messagesArrived()
  }
  await writeAndReturn(100)
  expect(writer.buffer(100)[0], 'it returns unchanged').toBe(7)
  await writeAndReturn(100)
  expect(writer.buffer(101)[0]).toBe(0)
  await writeAndReturn(500)
  const buffer = writer.buffer(100)
  expect([buffer[0], buffer.length]).toEqual([7, 100])
  writer.end({ written: 0 })
  await reader.read()
})

describe('when an export ends, the next one', () => {
  const { chunkBytes, channelWindowBytes } = limits
  beforeEach(() => {
    while (reuseBuffers().length > 0);
  })

  /** Sends chunks of these sizes. The reader recycles each when it reads the next, as the body of an answer does. */
  async function send(sizes: number[], buffers: ArrayBuffer[] = []) {
    const { reader, writer } = pair(channelWindowBytes, buffers)
    const writing = (async () => {
      for (const size of sizes) await writer.write(writer.buffer(size).fill(7))
      writer.end({ written: sizes.length })
    })()
    for (let chunk = await reader.read(); chunk; ) {
      const next = await reader.read()
      reader.recycle(chunk)
      await messagesArrived()
      chunk = next
    }
    await writing
  }

  test('gets the buffers of its last chunks', async () => {
    await send(Array(20).fill(chunkBytes))
    const buffers = reuseBuffers()
    expect(buffers.length).toBeGreaterThan(1)
    expect(buffers.map(({ byteLength }) => byteLength)).toEqual(buffers.map(() => chunkBytes))
    const [first] = buffers
    expect(new Uint8Array(first!)[0]).toBe(7)
    const { writer, reader } = pair(channelWindowBytes, [first!])
    expect(writer.buffer(100).buffer).toBe(first)
    writer.end({ written: 0 })
    await reader.read()
  })

  test('reuses buffers left in the thread: at most a window, each exactly the size of a chunk', async () => {
    const many = Array.from({ length: 40 }, () => new ArrayBuffer(chunkBytes))
    await send([chunkBytes], many)
    const counts = [reuseBuffers(), reuseBuffers(), reuseBuffers()].map(({ length }) => length)
    expect(counts).toEqual([channelWindowBytes / chunkBytes, channelWindowBytes / chunkBytes, 0])
    // An item of many megabytes gets a chunk of its own.
    await send([20 * chunkBytes, 20 * chunkBytes, chunkBytes / 2])
    expect(reuseBuffers().map(({ byteLength }) => byteLength)).toEqual([])
  })
})

test('a channel whose thread never starts leaves nothing open', async () => {
  const reader = new ChannelReader<Head, Summary>()
  reader.fail(new Error('no thread'))
  await expect(reader.head()).rejects.toThrow('no thread')
})

test('a channel cancelled before its thread starts leaves nothing open', async () => {
  const reader = new ChannelReader<Head, Summary>()
  const closed = once(reader.threadPort, 'close')
  reader.cancel()
  await closed
})
