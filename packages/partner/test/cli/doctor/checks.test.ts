/** `grandlivre doctor` names what is in order, and each fault with its exit code. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { beforeAll, expect, test } from 'vitest'
import { credentials, folders } from '../../../../../test/support/ledgers/tenants.ts'
import { selfSigned } from '../../../../../test/support/ops/certificate.ts'
import { openCopy } from '../../../src/sync/sync.ts'
import { accessOf, grandlivre, startGrandlivre } from '../../support/cli/command-line.ts'
import { proxiedStage } from '../../support/cli/proxied-stage.ts'

const isOpensslThere = spawnSync('openssl', ['version']).status === 0
if (!isOpensslThere) console.warn('No test of doctor over TLS: openssl is not there')

const { its, folder, at } = proxiedStage()
const to = at('copy.sqlite')
beforeAll(async () => {
  expect((await grandlivre(its.firm, ['sync', '--to', to])).code).toBe(0)
})

/** @returns the exit code, and the messages of checks by name: those in order, and those with a fault */
async function examine(env: Record<string, string>, ...more: string[]) {
  const { code, out, error } = await grandlivre(env, ['doctor', '--json', ...more])
  const { healthy, checks } = JSON.parse(out)
  const found: Record<string, string> = {}
  const faults: Record<string, string> = {}
  for (const { check, ok, message } of checks) (ok ? found : faults)[check] = message
  expect(healthy).toBe(code === 0)
  if (code !== 0) expect(JSON.parse(error).message).toBe(`Not in order: ${Object.keys(faults).join(', ')}`)
  return { code, found, faults }
}

test('the doctor finds access, service, token, folder, rate, clock, disk and copy in order', async () => {
  const { code, found, faults } = await examine(its.firm, '--to', to)
  expect([code, faults]).toEqual([0, {}])
  expect(found).toEqual({
    package: expect.stringMatching(/^grandlivre \d+\.\d+\.\d+, Node \d+/),
    access: 'from environment',
    service: `${its.proxy.url} answers, without TLS`,
    token: 'of a firm, id 110; movements, exports, webhooks, resources, employees; without end',
    folder: 'all 2 of the firm; grandlivre folders lists them',
    rate: expect.stringMatching(/^100000 requests a window, \d+ left until 20/),
    clock: 'as that of the service',
    disk: expect.stringMatching(new RegExp(`^[\\d.]+ .B free in ${folder}$`)),
    copy: `${to} has 2 folders, and no other process holds it`,
  })
})

test('the doctor shows the groups and the end of a token', async () => {
  const expiresAt = new Date('2031-03-01T00:00:00Z')
  const token = await its.stage.staff.token('PARTNER', 'api', folders.first, {
    groups: ['exports'],
    expiresAt,
  })
  const access = accessOf(
    its.stage.service.url,
    credentials(token, its.stage.company['X-Third-Party-Secret']!),
  )
  const { code, found } = await examine({ HOME: folder, ...access })
  expect([code, found['token']]).toEqual([
    0,
    expect.stringMatching(/^of a company; exports; ends 2031-03-01T00:00:00/),
  ])
})

test('without access the doctor reports a fault of this machine, and then checks only the disk', async () => {
  const { code, found, faults } = await examine({ HOME: folder })
  expect([code, Object.keys(faults), Object.keys(found)]).toEqual([7, ['access'], ['package', 'disk']])
})

test('the doctor names an address that does not answer, an address without TLS, and a refused token', async () => {
  const away = await examine({ ...its.firm, GRANDLIVRE_URL: 'http://127.0.0.1:1' })
  expect([away.code, away.faults]).toEqual([5, { service: expect.stringContaining('ECONNREFUSED') }])
  const plain = await grandlivre({ ...its.firm, GRANDLIVRE_URL: its.proxy.url.replace('http:', 'https:') }, [
    'doctor',
  ])
  expect(plain.code).toBe(5)
  expect(plain.out).toMatch(/^FAULT {2}service: GET .*\n +Check the address, its port and its certificate\./m)
  const refused = await examine({ ...its.firm, GRANDLIVRE_TOKEN: 'glv_firm_wrong' })
  const shown = await grandlivre({ ...its.firm, GRANDLIVRE_TOKEN: 'glv_firm_wrong' }, ['doctor'])
  expect(shown.out).toMatch(/^FAULT {2}token: .*\n +Check .*\n +Request id: \S+\n/m)
  expect(refused).toMatchObject({ code: 4, found: { service: expect.stringContaining(' answers') } })
  expect(Object.keys(refused.faults)).toEqual(['token'])
})

/** Starts a proxy that serves the service over TLS, and gives its address and certificate to `work`. */
async function throughTls(until: Date, work: (url: string, certificate: string) => Promise<void>) {
  const { key, cert } = await selfSigned(until)
  const server = createServer({ key, cert }, (near, answer) => {
    const far = request(its.stage.service.url + near.url, { headers: near.headers }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(answer)
    })
    near.pipe(far)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  writeFileSync(at('certificate.pem'), cert)
  try {
    const { port } = server.address() as AddressInfo
    await work(`https://localhost:${port}`, at('certificate.pem'))
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

test.skipIf(!isOpensslThere)(
  'TLS: the doctor tells an unknown authority, a known authority and an expired certificate apart',
  async () => {
    const day = 86_400_000
    await throughTls(new Date(Date.now() + 30 * day), async (url, certificate) => {
      const env = { ...its.firm, GRANDLIVRE_URL: url }
      const unknown = await startGrandlivre(env, ['doctor']).ended
      expect(unknown.code).toBe(5)
      expect(unknown.out).toMatch(/^FAULT {2}service: .*self-signed certificate.*\n +.*NODE_EXTRA_CA_CERTS/m)
      const known = await startGrandlivre({ ...env, NODE_EXTRA_CA_CERTS: certificate }, ['doctor']).ended
      expect([known.code, known.error]).toEqual([0, ''])
      expect(known.out).toContain(`service: ${url} answers over TLS`)
    })
    await throughTls(new Date(Date.now() - day), async (url, certificate) => {
      const env = { ...its.firm, GRANDLIVRE_URL: url, NODE_EXTRA_CA_CERTS: certificate }
      const ended = await startGrandlivre(env, ['doctor']).ended
      expect([ended.code, ended.out]).toEqual([5, expect.stringContaining('certificate has expired')])
    })
  },
)

test('the doctor reports a busy service and does not wait for it', async () => {
  const body = JSON.stringify({ error: { code: 'ERR-TOO-MANY-REQUEST', message: 'Busy', details: {} } })
  its.proxy.fault = () => ({ kind: 'answer', status: 429, headers: { 'Retry-After': '500' }, body })
  const { code, faults } = await examine(its.firm)
  expect([code, faults]).toEqual([5, { service: 'Busy' }])
})

test('the doctor reports a clock that differs by ten minutes', async () => {
  const headers = {
    'Content-Type': 'application/json',
    Date: new Date(Date.now() - 600_000).toUTCString(),
    ...Object.fromEntries(['total', 'remaining', 'reset'].map((name) => [`X-Rate-Limit-${name}`, '1'])),
  }
  const body = JSON.stringify({ target: { type: 'firm', societyId: 110 } })
  its.proxy.fault = (path) =>
    path.includes('/key/info') ? { kind: 'answer', status: 200, headers, body } : undefined
  const { code, found, faults } = await examine(its.firm)
  expect([code, faults['clock']]).toEqual([
    7,
    'The clock of this machine is 10 minutes ahead of that of the service',
  ])
  const others = { ...headers, Date: 'unknown' }
  its.proxy.fault = (path) =>
    path.includes('/key/info') ? { kind: 'answer', status: 200, headers: others, body } : undefined
  expect((await examine(its.firm)).found['clock']).toBe(
    'not compared: the service sends no valid Date header',
  )
  // An older service sends neither groups nor an end.
  expect(found['token']).toBe('of a firm, id 110')
})

test('the doctor reports a copy that another process holds, a missing copy and a missing disk', async () => {
  const held = await openCopy(to)
  await held.lock([folders.first.firmId])
  const locked = await examine(its.firm, '--to', to)
  await held.close()
  expect([locked.code, Object.keys(locked.faults)]).toEqual([7, ['copy']])
  const none = await examine(its.firm, '--to', at('none/copy.sqlite'))
  expect([none.code, Object.keys(none.faults)]).toEqual([7, ['disk', 'copy']])
  expect(none.faults['disk']).toMatch(`No file can be written in ${folder}/none: ENOENT`)
  const { out, error } = await grandlivre(its.firm, ['doctor', '--json', '--to', at('none/copy.sqlite')])
  // In JSON every remedy is a text or null, in checks and in errors.
  const remedies = JSON.parse(out).checks.map(({ remedy }: { remedy: unknown }) => remedy)
  expect(remedies.filter(Boolean)).toEqual(Array(2).fill(expect.stringMatching(/^(Make|Create)/)))
  expect([remedies[0], JSON.parse(error).remedy]).toEqual([null, null])
})
