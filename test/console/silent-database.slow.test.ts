/** A page that is kept up to date, while the database keeps its connections and answers nothing. */
import { expect, test } from 'vitest'
import { createConsoleKey } from '../../src/auth/console-keys.sql.ts'
import { createTenants } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { startProxy } from '../support/servers/proxy.ts'
import { startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

test('a live page ends within seconds if the database is silent, and resumes once it answers', async () => {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  await staff.client.query('set search_path = grandlivre')
  const key = (await createConsoleKey(staff.client, 'alice'))!
  const proxy = await startProxy(database.ownerUrl)
  const console = { host: '127.0.0.1', port: 0 }
  const service = await startTestService({ ownerUrl: proxy.url }, { console })
  const headers = { 'Sec-Fetch-Site': 'same-origin' }
  const signedIn = await fetch(`${service.consoleUrl}/sign-in`, {
    method: 'POST',
    headers,
    body: new URLSearchParams({ key }),
    redirect: 'manual',
  })
  const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
  const page = { headers: { Cookie: cookie, Accept: 'text/event-stream' } }
  const watching = await fetch(service.consoleUrl!, page)
  const reader = watching.body!.getReader()
  await reader.read()
  proxy.freeze()
  while (!(await reader.read()).done);
  expect((await fetch(service.consoleUrl!, page)).status).toBe(503)
  proxy.thaw()
  await until(async () => {
    const answer = await fetch(service.consoleUrl!, page)
    await answer.body!.cancel()
    return answer.status === 200
  })
  await service.stop()
  await proxy.cut()
  await staff.end()
  await database.drop()
})
