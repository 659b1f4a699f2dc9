import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../support/servers/database.ts'
import { startTestService } from '../support/service.ts'
import { until } from '../support/until.ts'

test('a service can stop while a sweep waits for a store that does not answer', async () => {
  const requests: string[] = []
  let waiting = 0
  const server = createServer((request, response) => {
    requests.push(request.url!)
    // The request that lists unfinished uploads gets no answer; it would be retried.
    if (request.url!.includes('uploads')) waiting += 1
    else response.end('<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const database = await createTestDatabase()
  const service = await startTestService(database, {
    store: {
      kind: 's3',
      endpoint,
      publicEndpoint: endpoint,
      bucket: 'files',
      region: 'us-east-1',
      accessKey: 'key',
      secretKey: 'secret',
    },
  })
  await until(() => waiting > 0)
  await service.stop()
  // The service stopped during the first of many tries.
  expect([waiting, requests.length]).toEqual([1, 2])
  expect(service.lines.some((line) => line.includes('retention.error'))).toBe(false)
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
  await database.drop()
})
