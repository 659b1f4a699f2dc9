/** The bound of a stop, at its real value: STOP_SECONDS and `closeMs` of the default timing, 35 seconds. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startProcess } from '../support/process.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { startProxy } from '../support/servers/proxy.ts'

test('a service whose database has fallen silent still stops', { timeout: 180_000 }, async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-test-'))
  const database = await createTestDatabase()
  const proxy = await startProxy(database.ownerUrl)
  const service = await startProcess({ DATABASE_URL: proxy.url, DATA_DIR: dataDir })
  try {
    proxy.freeze()
    service.child.kill('SIGTERM')
    expect(await service.ended).toEqual([1, null])
  } finally {
    await service.kill()
    await proxy.cut()
    await database.drop()
    await rm(dataDir, { recursive: true })
  }
})
