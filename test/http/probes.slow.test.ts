import { expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { startProxy } from '../support/servers/proxy.ts'
import { request, startTestService } from '../support/service.ts'
import { keyInfo, setCallerStage } from '../support/stages/caller-stage.ts'
import { until } from '../support/until.ts'

const stage = forTests(setCallerStage)

test('the probes report that the database is away and then back; meanwhile callers get 503 with Retry-After', async () => {
  const proxy = await startProxy(stage.database.ownerUrl)
  const proxied = await startTestService({ ownerUrl: proxy.url })
  try {
    const status = async (path: string) => (await request(proxied.url + path, stage.signed)).status
    expect([await status('/healthz'), await status('/readyz'), await status(keyInfo)]).toEqual([
      200, 200, 200,
    ])
    await proxy.cut()
    expect(await status('/healthz')).toBe(200)
    for (const path of ['/readyz', keyInfo]) {
      const { status, headers, body } = await request(proxied.url + path, stage.signed)
      expect([status, body.error.code]).toEqual([503, 'ERR-UNAVAILABLE'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
      expect(JSON.stringify(body)).not.toMatch(/ECONNREFUSED|postgres|127\.0\.0\.1/)
    }
    await proxy.restore()
    await until(async () => (await status('/readyz')) === 200)
    expect(await status(keyInfo)).toBe(200)
  } finally {
    await proxied.stop()
    await proxy.cut()
  }
})

test('a database that hangs counts as away, and no request waits for it forever', async () => {
  const proxy = await startProxy(stage.database.ownerUrl)
  const proxied = await startTestService({ ownerUrl: proxy.url })
  const ask = (path: string) => request(proxied.url + path, stage.signed)
  try {
    for (const path of ['/readyz', keyInfo]) expect((await ask(path)).status).toBe(200)
    proxy.freeze()
    for (const { status, headers, body } of await Promise.all(['/readyz', keyInfo].map(ask))) {
      expect([status, body.error.code]).toEqual([503, 'ERR-UNAVAILABLE'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect((await ask('/healthz')).status).toBe(200)
    proxy.thaw()
    await until(async () => (await ask('/readyz')).status === 200)
    expect((await ask(keyInfo)).status).toBe(200)
  } finally {
    proxy.thaw()
    await proxied.stop()
    await proxy.cut()
  }
})
