/** Rows of COPY from the real database, however the network cuts its bytes. */
import { once } from 'node:events'
import { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { CopyRows } from '../../src/db/copy-rows.ts'
import { forTests } from '../support/for-tests.ts'
import { ask, createTestDatabase } from '../support/servers/database.ts'

const database = forTests(() => createTestDatabase({ template: 'template1' }))

/**
 * A socket whose bytes arrive in pieces of the given sizes, in rotation from the first one, one piece per turn of the
 * event loop.
 */
class ChoppedSocket extends Duplex {
  #sizes: number[] = []
  #turn = 0
  readonly #socket = new Socket()

  constructor() {
    super({ allowHalfOpen: false })
  }

  set sizes(sizes: number[]) {
    this.#sizes = sizes
    this.#turn = 0
  }

  connect(port: number, host: string): void {
    this.#socket.connect(port, host, () => this.emit('connect'))
    this.#socket.on('error', (error) => this.destroy(error))
    this.#forward().catch((error) => this.destroy(error))
  }

  async #forward(): Promise<void> {
    await once(this.#socket, 'connect')
    for await (const chunk of this.#socket) {
      for (let at = 0; at < chunk.length; ) {
        const size = this.#sizes[this.#turn++ % this.#sizes.length] ?? chunk.length
        // Pushes a copy, because a chunk of a real socket has a buffer of its own.
        this.push(Buffer.from(new Uint8Array(chunk.subarray(at, at + size)).buffer))
        at += size
        if (this.#sizes.length > 0) await nextTurn()
      }
    }
    this.push(null)
  }

  setNoDelay(): void {
    this.#socket.setNoDelay()
  }
  setKeepAlive(): void {}
  ref(): void {}
  unref(): void {}

  override _read(): void {}
  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done)
  }
  override _final(done: () => void): void {
    // A server that disconnected during a write leaves nothing to end.
    if (this.#socket.destroyed) done()
    else this.#socket.end(() => done())
  }
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }
}

async function withClientOn<S, T>(socket: S, run: (client: pg.Client, socket: S) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: database.ownerUrl,
    stream: () => socket as unknown as Socket,
  })
  client.on('error', () => {})
  await client.connect()
  try {
    return await run(client, socket)
  } finally {
    await client.end()
  }
}

const withClient = <T>(run: (client: pg.Client, socket: ChoppedSocket) => Promise<T>) =>
  withClientOn(new ChoppedSocket(), run)

/** Runs the test on a client with an ordinary socket. */
const withSocket = <T>(run: (client: pg.Client, socket: Socket) => Promise<T>) =>
  withClientOn(new Socket(), run)

async function read(rows: CopyRows): Promise<string[][]> {
  const found: string[][] = []
  while (await rows.fill())
    for (let row = 0; row < rows.count; row++) {
      const base = row * rows.stride
      const texts = []
      for (let k = 0; k < rows.stride - 1; k++)
        texts.push(rows.bytes.toString('utf8', rows.fields[base + k], rows.fields[base + k + 1]! - 1))
      found.push(texts)
    }
  return found
}

const text = (rows: number) => `copy (
  select i, repeat('é' || i, i % 5), case when i % 3 = 0 then null else E'a\\tb' end
  from generate_series(1, ${rows}) as i order by i) to stdout`

const expected = (rows: number) =>
  Array.from({ length: rows }, (_, n) => [
    String(n + 1),
    `é${n + 1}`.repeat((n + 1) % 5),
    (n + 1) % 3 === 0 ? '\\N' : 'a\\tb',
  ])

describe('extend()', () => {
  test.each([7, 64, 1000])(
    'returns the kept rows before the next ones, if bytes arrive in pieces of %i',
    async (size) => {
      await withClient(async (client, socket) => {
        socket.sizes = [size, 1, 3 * size]
        const rows = client.query(new CopyRows(text(300), 3))
        const idAt = (row: number) => {
          const base = row * rows.stride
          return Number(rows.bytes.toString('utf8', rows.fields[base], rows.fields[base + 1]! - 1))
        }
        let next = 1
        let held = 0
        while (await rows.fill()) {
          // Every row is read together with the six before it, which are kept across batches.
          for (let row = 0; row < rows.count; row++) {
            expect(idAt(row)).toBe(next++)
            const first = Math.max(0, row - 6)
            if (row < rows.count - 1) continue
            const kept = Array.from({ length: row - first + 1 }, (_, i) => idAt(first + i))
            rows.base = first * rows.stride
            if (await rows.extend()) {
              expect(kept.map((_, i) => idAt(i))).toEqual(kept)
              expect(rows.count).toBeGreaterThanOrEqual(kept.length)
              row = kept.length - 1
              held++
            } else expect(idAt(row)).toBe(300)
          }
        }
        expect(next).toBe(301)
        expect(held).toBeGreaterThan(2)
        expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
      })
    },
  )
})

describe('a reader returns complete rows', () => {
  test('if the bytes are cut at any place', async () => {
    await withClient(async (client, socket) => {
      for (let first = 1; first <= 100; first++) {
        socket.sizes = [first, 1_000_000]
        expect(await read(client.query(new CopyRows(text(6), 3))), `cut at ${first}`).toEqual(expected(6))
      }
    })
  })

  test.each([[1], [3], [2, 3], [5, 1], [7], [64], [1, 1000], [1_000_000]])(
    'if pieces have %j bytes, and leaves the connection ready for the next query',
    async (...sizes) => {
      await withClient(async (client, socket) => {
        socket.sizes = sizes
        const rows = client.query(new CopyRows(text(40), 3))
        const next = client.query('select 42 as answer')
        expect(await read(rows)).toEqual(expected(40))
        expect((await next).rows).toEqual([{ answer: 42 }])
      })
    },
  )

  test('if there are many or none, or if a row is longer than a read', async () => {
    await withSocket(async (client) => {
      expect(await read(client.query(new CopyRows(text(20_000), 3)))).toEqual(expected(20_000))
      expect(await read(client.query(new CopyRows(text(0), 3)))).toEqual([])
      const long = `copy (select repeat('x' || i, 200000), i from generate_series(1, 5) as i order by i) to stdout`
      const next = client.query(new CopyRows(long, 2))
      const other = client.query(`select repeat('é', 300000) as answer`)
      expect(await read(next)).toEqual([1, 2, 3, 4, 5].map((i) => [`x${i}`.repeat(200_000), String(i)]))
      expect((await other).rows).toEqual([{ answer: 'é'.repeat(300_000) }])
    })
  })

  test('if two connections are read at once', async () => {
    const both = await Promise.all(
      [30_000, 29_999].map((rows) => withSocket((client) => read(client.query(new CopyRows(text(rows), 3))))),
    )
    expect(both).toEqual([expected(30_000), expected(29_999)])
  })

  test('of several statements, one statement after the other, if the bytes are cut at any place', async () => {
    await withClient(async (client, socket) => {
      for (const sizes of [[1], [2, 3], [7], [1, 1000], [1_000_000]]) {
        socket.sizes = sizes
        const rows = await read(client.query(new CopyRows([text(4), text(0), text(9), text(0)], 3)))
        expect(rows).toEqual([...expected(4), ...expected(9)])
        expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
      }
      const failing = client.query(new CopyRows([text(4), text(2).replace('i % 5', 'i / 0')], 3))
      await expect(read(failing)).rejects.toThrow('division by zero')
      expect((await client.query('select 2 as two')).rows).toEqual([{ two: 2 }])
    })
  })
})

describe('a reader rejects, and does not report an end of the rows,', () => {
  const failing = `copy (select i, 100 / (4 - i) from generate_series(1, 10) as i order by i) to stdout`

  test('if the query fails before or after a row, with the bytes cut at any place', async () => {
    await withClient(async (client, socket) => {
      for (const [statement, message] of [
        [failing, 'division by zero'],
        ['copy (select 1, 2 from nowhere) to stdout', 'nowhere'],
      ] as const)
        for (let first = 1; first <= 130; first++) {
          socket.sizes = [first, 1_000_000]
          const rows = client.query(new CopyRows(statement, 2))
          await expect(read(rows), `cut at ${first}`).rejects.toThrow(message)
          expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
        }
    })
  })

  const endless = `copy (select i, repeat('x', 1000) from generate_series(1, 1000000) as i) to stdout`

  test.each([
    ['in pieces', withClient],
    ['on an ordinary socket', withSocket],
  ] as const)('if the connection breaks: %s', async (_, withIt) => {
    await withIt(async (client: pg.Client, socket: Duplex) => {
      await expect(read(client.query(new CopyRows(failing, 2)))).rejects.toThrow('division by zero')
      expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
      const rows = client.query(new CopyRows(endless, 2))
      expect(await rows.fill()).toBe(true)
      socket.destroy()
      await expect(read(rows)).rejects.toThrow('Connection terminated')
    })
  })

  test('if the server ends the connection', async () => {
    for (const sizes of [[], [100], [65536, 1]])
      await withClient(async (client, socket) => {
        const { rows: who } = await client.query('select pg_backend_pid() as pid')
        socket.sizes = sizes
        const rows = client.query(new CopyRows(endless, 2))
        expect(await rows.fill()).toBe(true)
        await ask(database.ownerUrl, 'select pg_terminate_backend($1)', [who[0].pid])
        socket.sizes = []
        await expect(read(rows)).rejects.toThrow(/terminat/)
      })
  })
})

test('two readers never share an array, even if the first is read again after its end', async () => {
  await withClient(async (client) => {
    const ended = client.query(new CopyRows(text(3), 3))
    const { fields } = ended
    expect(await read(ended)).toHaveLength(3)
    expect(await ended.fill()).toBe(false)
    const [one, other] = [new CopyRows(text(1), 3), new CopyRows(text(1), 3)]
    expect(one.fields, 'the array of the ended reader is used again').toBe(fields)
    expect(other.fields).not.toBe(fields)
  })
})

test('a reader that stops reading makes the database stop sending', async () => {
  await withSocket(async (client, socket) => {
    const before = socket.bytesRead
    const rows = client.query(
      new CopyRows(`copy (select i, repeat('x', 1000) from generate_series(1, 30000) as i) to stdout`, 2),
    )
    expect(await rows.fill()).toBe(true)
    // Without further reads the socket pauses itself, and stays paused.
    while (!socket.isPaused()) await nextTurn()
    expect(socket.bytesRead - before).toBeLessThan(3 * 1024 * 1024)
    expect((await read(rows)).length).toBeGreaterThan(25_000)
    expect(socket.bytesRead - before).toBeGreaterThan(30_000_000)
  })
})
