import { expect, test } from 'vitest'
import { startProcess } from '../support/process.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { startProxy } from '../support/servers/proxy.ts'

test('a service can stop although its database has fallen silent', { timeout: 180_000 }, async () => {
  const database = await createTestDatabase()
  const proxy = await startProxy(database.ownerUrl)
  const service = await startProcess({ DATABASE_URL: proxy.url })
  try {
    proxy.freeze()
    service.child.kill('SIGTERM')
    expect(await service.ended).toEqual([1, null])
  } finally {
    await service.kill()
    await proxy.cut()
    await database.drop()
  }
})
