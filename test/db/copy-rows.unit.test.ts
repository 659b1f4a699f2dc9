/** What a reader of COPY does with its buffer, on a socket whose bytes the test sends. */
import { Buffer } from 'node:buffer'
import { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type pg from 'pg'
import { beforeEach, expect, test } from 'vitest'
import { CopyRows } from '../../src/db/copy-rows.ts'

const readBytes = 64 * 1024
/** Room for rows, and for eight bytes that may be read after the last row. */
const usualBytes = 256 * 1024 + 8

const copyDone = message('c', '')
const commandComplete = message('C', 'COPY 1\0')

class Server extends Duplex {
  override _read(): void {}
  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    done()
  }
}

let socket: Server
/** The bytes that pg's own reader got. */
let toPg: Buffer[]

beforeEach(() => {
  socket = serverFor((chunk) => toPg.push(chunk))
  toPg = []
})

function serverFor(listener: (chunk: Buffer) => void): Server {
  const server = new Server()
  server.on('data', listener)
  return server
}

function message(code: string, content: string): Buffer {
  const bytes = Buffer.alloc(5 + Buffer.byteLength(content))
  bytes.write(code)
  bytes.writeInt32BE(bytes.length - 1, 1)
  bytes.write(content, 5)
  return bytes
}

const row = (id: number, length: number) => message('d', `${id}\t${'x'.repeat(length)}\n`)

function reading(from = socket): CopyRows {
  const rows = new CopyRows('copy', 2)
  rows.submit({ stream: from, query() {} } as unknown as pg.Connection)
  return rows
}

const idAt = (rows: CopyRows, index: number) => {
  const first = index * rows.stride
  return Number(rows.bytes.toString('latin1', rows.fields[first], rows.fields[first + 1]! - 1))
}

/** The ids of all rows up to the end. */
async function idsOf(rows: CopyRows): Promise<number[]> {
  const ids: number[] = []
  while (await rows.fill()) for (let k = 0; k < rows.count; k++) ids.push(idAt(rows, k))
  return ids
}

/** Reads to the end, so that the reader returns its arrays. */
async function readToEnd(rows: CopyRows, server = socket): Promise<void> {
  server.push(copyDone)
  while (await rows.fill());
}

test('the buffer keeps its size, however often its reader waits for its client', async () => {
  const rows = reading()
  let sent = 0
  const ids: number[] = []
  const take = async () => {
    await rows.fill()
    for (let k = 0; k < rows.count; k++) ids.push(idAt(rows, k))
  }
  for (let stall = 0; stall < 6; stall++) {
    // The reader keeps up, and its batch is small.
    socket.push(row(sent++, 1000))
    await take()
    expect(rows.count).toBe(1)
    // The reader then waits, and rows arrive until the buffer is full.
    while (!socket.isPaused()) {
      socket.push(Buffer.concat(Array.from({ length: 50 }, () => row(sent++, 1000))))
      await nextTurn()
    }
    while (ids.length < sent) {
      await take()
      expect(rows.bytes.buffer.byteLength).toBe(usualBytes)
    }
  }
  expect(ids).toEqual(Array.from({ length: sent }, (_, id) => id))
  await readToEnd(rows)
})

test('a socket is paused while the buffer has no room for a read, and resumes afterwards', async () => {
  const rows = reading()
  let sent = 0
  while (!socket.isPaused()) {
    socket.push(row(sent++, readBytes - 100))
    await nextTurn()
  }
  expect(sent).toBe(4)
  await rows.fill()
  expect(socket.isPaused()).toBe(true)
  expect(rows.count).toBe(4)
  const next = rows.fill()
  await nextTurn()
  expect(socket.isPaused()).toBe(false)
  socket.push(row(sent++, 10))
  await next
  expect(idAt(rows, 0)).toBe(4)
  await readToEnd(rows)
})

test('a row longer than the buffer is read, however it arrives, and so are the rows after it', async () => {
  for (const size of [readBytes, 3 * usualBytes]) {
    const bytes = Buffer.concat([row(1, 10), row(2, 2_000_000), row(3, 10), copyDone])
    const rows = reading()
    const ids = idsOf(rows)
    for (let at = 0; at < bytes.length; at += size) {
      socket.push(bytes.subarray(at, at + size))
      await nextTurn()
    }
    expect(await ids).toEqual([1, 2, 3])
    const after = reading()
    expect(after.view.byteLength, 'a larger buffer is not kept').toBe(usualBytes)
    await readToEnd(after)
  }
})

test('a batch keeps its rows while later rows arrive', async () => {
  const rows = reading()
  socket.push(Buffer.concat([row(1, 10), row(2, 10), row(3, 10).subarray(0, 9)]))
  await rows.fill()
  socket.push(row(3, 10).subarray(9))
  // One read brings more than the buffer has room for, so the reader continues in a larger buffer.
  socket.push(row(4, 2 * usualBytes))
  expect([0, 1].map((k) => idAt(rows, k))).toEqual([1, 2])
  await rows.fill()
  expect([0, 1].map((k) => idAt(rows, k))).toEqual([3, 4])
  await readToEnd(rows)
})

test('eight bytes can be read after the last row of a batch, even if the buffer is full', async () => {
  const rows = reading()
  let at = 0
  while (at + readBytes < usualBytes) {
    const one = row(1, readBytes - 8)
    socket.push(one)
    at += one.length
  }
  while (!socket.isPaused()) await nextTurn()
  await rows.fill()
  expect(rows.bytes.length).toBe(usualBytes - 8)
  expect(rows.view.byteLength - rows.bytes.length).toBeGreaterThanOrEqual(7)
  await readToEnd(rows)
})

test('the bytes that pg got stay unchanged when another reader uses the same buffer', async () => {
  const rows = reading()
  const [head, tail] = [commandComplete.subarray(0, 7), commandComplete.subarray(7)]
  socket.push(Buffer.concat([row(1, 10), copyDone, head]))
  expect(await idsOf(rows)).toEqual([1])
  const other = serverFor(() => {})
  const next = reading(other)
  expect(next.view.buffer, 'the buffer is used again').toBe(rows.view.buffer)
  other.push(row(2, 1000))
  await next.fill()
  socket.push(tail)
  await nextTurn()
  expect(Buffer.concat(toPg)).toEqual(commandComplete)
  await readToEnd(next, other)
})

test('the arrays of a reader that fails or is abandoned are never given to another', async () => {
  const failed = reading()
  socket.push(row(1, 10))
  await failed.fill()
  failed.handleError(new Error('lost'))
  await expect(failed.fill()).rejects.toThrow('lost')
  await expect(failed.fill()).rejects.toThrow('lost')
  const left = reading(serverFor(() => {}))
  const next = [reading(serverFor(() => {})), reading(serverFor(() => {}))]
  const buffers = [failed, left, ...next].map(({ view }) => view.buffer)
  expect(new Set(buffers).size).toBe(buffers.length)
  // Bytes that still arrive for the failed reader go into its own buffer.
  socket.push(row(2, 1000))
  await nextTurn()
  expect(next[0]!.count).toBe(0)
})
