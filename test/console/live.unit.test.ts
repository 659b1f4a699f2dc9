/** Browsers that watch a page, over HTTP. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { expect, test } from 'vitest'
import { watchPages } from '../../src/console/live.ts'
import type { ConsoleEdge } from '../../src/console/page.ts'

test('a browser that leaves while its session is read gets no live updates', async () => {
  const watch = watchPages(new AbortController().signal)
  const arrived = Promise.withResolvers<void>()
  const sent = Promise.withResolvers<string>()
  const app = new Hono<ConsoleEdge>().get('/', async (c) => {
    arrived.resolve()
    await once(c.env.outgoing, 'close')
    sent.resolve(await watch(c, () => Promise.resolve('content'), 1).text())
    return c.body(null)
  })
  const server = createServer(getRequestListener(app.fetch)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const leaving = new AbortController()
  const asked = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, leaving)
  await arrived.promise
  leaving.abort()
  await expect(asked).rejects.toThrow('aborted')
  expect(await sent.promise).toBe('')
  server.close()
})
