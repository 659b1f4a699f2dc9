/** What staff see while the database is away. */
import { expect, test } from 'vitest'
import { createTestDatabase } from '../support/servers/database.ts'
import { startProxy } from '../support/servers/proxy.ts'
import { startTestService } from '../support/service.ts'

test('a page says what is missing, and asks again by itself', async () => {
  const database = await createTestDatabase()
  const proxy = await startProxy(database.ownerUrl)
  const console = { host: '127.0.0.1', port: 0 }
  const service = await startTestService({ ownerUrl: proxy.url }, { console })
  // Nobody's session, which only the database can tell.
  const ask = () =>
    fetch(service.consoleUrl!, { headers: { Cookie: 'grandlivre-console=none' }, redirect: 'manual' })
  expect((await ask()).status).toBe(303)
  await proxy.cut()
  const answer = await ask()
  const text = await answer.text()
  expect([answer.status, text.includes('<meta http-equiv="refresh" content="5">')]).toEqual([503, true])
  expect(text).toContain('The service lacks the database.')
  // A form is sent again by staff alone.
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
  await database.drop()
})
