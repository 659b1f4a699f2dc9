/** When a process with CONSOLE_PORT starts, and when it does not. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/servers/database.ts'
import { startTestService } from '../support/service.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database?.drop())

test('a process whose login does not own the tables does not start with a console', async () => {
  const settings = { console: { host: '127.0.0.1', port: 0 } }
  await expect(startTestService({ ownerUrl: database.serviceUrl }, settings)).rejects.toThrow(
    /^CONSOLE_PORT is set, but the login \w+ does not own the tables.*set DIRECT_DATABASE_URL/,
  )
  const service = await startTestService({ ownerUrl: database.serviceUrl })
  expect(service.consoleUrl).toBeUndefined()
  await service.stop()
})

test('a port that is taken is named with its setting', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const settings = { console: { host: '127.0.0.1', port } }
  await expect(startTestService(database, settings)).rejects.toThrow(
    `Port ${port} of 127.0.0.1 is in use: stop the program that listens there, or set CONSOLE_PORT`,
  )
  taken.close()
})
