/** When a process with CONSOLE_PORT starts, and what staff see while the database is away. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { startProxy } from '../support/servers/proxy.ts'
import { startTestService } from '../support/service.ts'

const database = forTests(createTestDatabase)

test('a process whose login does not own the tables refuses to start with a console', async () => {
  const settings = { console: { host: '127.0.0.1', port: 0 } }
  await expect(startTestService({ ownerUrl: database.serviceUrl }, settings)).rejects.toThrow(
    /^CONSOLE_PORT is set, but the login \w+ does not own the tables.*set DIRECT_DATABASE_URL/,
  )
  const service = await startTestService({ ownerUrl: database.serviceUrl })
  expect(service.consoleUrl).toBeUndefined()
  await service.stop()
})

test('a port in use is reported with the name of its setting', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const settings = { console: { host: '127.0.0.1', port } }
  await expect(startTestService(database, settings)).rejects.toThrow(
    `Port ${port} of 127.0.0.1 is in use: stop the program that listens there, or set CONSOLE_PORT`,
  )
  taken.close()
})

test('a page says what is missing, and retries by itself', async () => {
  const proxy = await startProxy(database.ownerUrl)
  const console = { host: '127.0.0.1', port: 0 }
  const service = await startTestService({ ownerUrl: proxy.url }, { console })
  // This cookie belongs to no session: the console asks the database to find that out.
  const ask = () =>
    fetch(service.consoleUrl!, { headers: { Cookie: 'grandlivre-console=none' }, redirect: 'manual' })
  expect((await ask()).status).toBe(303)
  await proxy.cut()
  const answer = await ask()
  const text = await answer.text()
  expect([answer.status, text.includes('<meta http-equiv="refresh" content="5">')]).toEqual([503, true])
  expect(text).toContain('The service lacks the database.')
  // Only staff may send a form again, so this page does not retry.
  const headers = { 'Sec-Fetch-Site': 'same-origin' }
  const body = new URLSearchParams({ key: 'glv_console_1' })
  const sent = await fetch(`${service.consoleUrl}/sign-in`, { method: 'POST', headers, body })
  const says = await sent.text()
  expect([sent.status, says.includes('http-equiv="refresh"')]).toEqual([503, false])
  expect(says).toContain('look whether the form was carried out')
  await proxy.restore()
  expect((await ask()).status).toBe(303)
  await service.stop()
  await proxy.cut()
})
