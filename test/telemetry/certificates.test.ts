/** Certificates of real TLS servers on the loopback address. */
import { expect, test } from 'vitest'
import { endpointsOf, watchCertificates } from '../../src/telemetry/certificates.ts'
import { forTests } from '../support/for-tests.ts'
import { startTlsServer } from '../support/ops/certificate.ts'
import { until } from '../support/until.ts'

const days = (count: number): Date => new Date(Date.now() + count * 86_400_000)

const server = forTests(() => startTlsServer(days(20)))

/** Whole days until the certificate expires; undefined before it has been read. */
function daysLeft(observe: ReturnType<typeof watchCertificates>): number | undefined {
  const [observed] = observe()
  return observed && Math.round(observed.value / 86_400)
}

test('the expiry of a certificate is read in the background, and refreshed when due', async () => {
  const observe = watchCertificates([{ endpoint: 'public', url: server.url }], 50, () => {})
  expect(observe()).toEqual([])
  await until(() => daysLeft(observe) === 20)
  expect(observe()[0]!.labels).toEqual({ endpoint: 'public' })
  await server.present(days(-2))
  await until(() => daysLeft(observe) === -2)
})

test('an address that stops answering is logged once, and keeps its last known expiry', async () => {
  const logged: object[] = []
  const other = await startTlsServer(days(7))
  const log = (event: string, fields: object) => void logged.push({ event, ...fields })
  const observe = watchCertificates([{ endpoint: 'store', url: other.url }], 0, log)
  await until(() => daysLeft(observe) === 7)
  await other.close()
  await until(() => {
    observe()
    return logged.length > 0
  })
  for (let reads = 0; reads < 5; reads += 1) {
    observe()
    await new Promise(setImmediate)
  }
  expect(daysLeft(observe)).toBe(7)
  expect(logged).toEqual([{ event: 'certificate.unread', url: other.url, error: expect.any(Error) }])
})

test('certificates are read only from TLS addresses of the operator', () => {
  const s3 = {
    kind: 's3',
    endpoint: 'http://files:9000',
    publicEndpoint: 'https://files.example.com',
    bucket: 'exports',
    region: 'us-east-1',
    accessKey: 'key',
    secretKey: 'secret',
  } as const
  expect(endpointsOf({ publicUrl: 'https://ledger.example.com', store: s3 })).toEqual([
    { endpoint: 'public', url: 'https://ledger.example.com' },
    { endpoint: 'store_public', url: 'https://files.example.com' },
  ])
  expect(endpointsOf({ publicUrl: undefined, store: { ...s3, endpoint: s3.publicEndpoint } })).toEqual([
    { endpoint: 'store', url: 'https://files.example.com' },
  ])
  const folder = { kind: 'filesystem', folder: '/files' } as const
  expect(endpointsOf({ publicUrl: 'http://localhost:8080', store: folder })).toEqual([])
})
