/** When the buffers of a body's chunks are returned, on a server and socket of Node. */
import { strict as assert } from 'node:assert'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { expect, test } from 'vitest'
import type { Edge } from '../../src/http/route.ts'
import { streamBody } from '../../src/http/stream/stream-export.ts'

test('every chunk is returned to its pool once the kernel has it, even small chunks in quick succession', async () => {
  const usual = 256 * 1024
  const sizes = [20, usual, 20, 20, usual, 20]
  const recycled: number[] = []
  const app = new Hono<Edge>().get('/', (c) => {
    const chunks = sizes.map((bytes) => new Uint8Array(bytes)).values()
    const source = {
      read: async () => chunks.next().value,
      recycle: ({ length }: Uint8Array) => void recycled.push(length),
      cancel: () => {},
    }
    const log = () => assert.fail('the stream broke')
    const body = streamBody(c, { log }, 'stream.broken', source)
    return c.body(body, { headers: { 'Transfer-Encoding': 'chunked' } })
  })
  const server = createAdaptorServer({ fetch: app.fetch as never }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const body = await (await fetch(`http://127.0.0.1:${port}/`)).arrayBuffer()
    expect(body.byteLength).toBe(sizes.reduce((sum, bytes) => sum + bytes))
    // The socket still holds the chunk after the last long one.
    expect(recycled).toEqual(sizes.slice(0, -1))
  } finally {
    server.close()
  }
})
