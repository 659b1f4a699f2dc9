/** Receivers with one fault each, and what the doctor reports about them. */
import { afterAll, describe, expect, test } from 'vitest'
import { defaultTiming } from '../../../../../src/timing.ts'
import { forTests } from '../../../../../test/support/for-tests.ts'
import {
  closedPort,
  type Planted,
  startAnswering,
  startChangingProxy,
  startHangingUp,
  startSelfSigned,
  startVerifying,
} from '../../../../../test/support/receivers/planted.ts'
import { startNameServer } from '../../../../../test/support/servers/name-server.ts'
import { setReceivingStage } from '../../../../../test/support/stages/receiving-stage.ts'
import { documentEvent } from '../../../../../test/support/stages/webhooks.ts'
import { until } from '../../../../../test/support/until.ts'
import type { Fault, Finding } from '../../../src/cli/doctor/diagnosis.ts'
import { accessOf, grandlivre, jsonLines } from '../../support/cli/command-line.ts'

/** Starts a service with a partner who subscribes. */
async function startSide(webhookAllowInsecure: boolean) {
  // Deliveries time out sooner than after ten seconds.
  const deliveries = { ...defaultTiming.deliveries, slowMs: 200, timeoutMs: 400 }
  const stage = await setReceivingStage({ webhookAllowInsecure }, { ...defaultTiming, deliveries })
  const { call, close } = stage
  return {
    env: accessOf(stage.service.url, stage.own),
    secret: stage.partnerSecret,
    /** @returns the id of a subscription to `document` */
    subscribe: async (postUrl: string | null) =>
      String((await call('POST', '', { postUrl, onEvents: ['document'] })).body.id),
    publish: () => stage.publish([documentEvent('a', '111')]),
    deliveries: async (id: string) => (await call('GET', `/${id}/deliveries`)).body,
    /** Lets the next ping follow at once. */
    forgetPing: (id: string) =>
      stage.sql('update grandlivre.subscriptions set pinged_at = null where id = $1', [id]),
    close,
  }
}

const names = forTests(() => startNameServer({ 'moved.test': ['8.8.8.8'] }))
/** Allows http and addresses of this machine, as in development. */
const lenient = forTests(() => startSide(true))
/** Has the rules of production. */
const strict = forTests(() => startSide(false))
const planted: Planted[] = []
afterAll(() => Promise.all(planted.map((each) => each.close())))

async function plant(starting: Promise<Planted>): Promise<string> {
  const started = await starting
  planted.push(started)
  return started.url
}

interface Result {
  code: number
  healthy: boolean
  enabled: boolean
  findings: Finding[]
}

async function examine(side: typeof lenient, id: string, ...words: string[]): Promise<Result> {
  await side.forgetPing(id)
  const { code, out, error } = await grandlivre(side.env, ['webhook', 'doctor', id, '--json', ...words])
  if (out === '') throw new Error(error)
  return { code, ...JSON.parse(out) }
}

/** @returns the id of a subscription after one attempt to send an event to its receiver */
async function attempted(receiver: Promise<Planted>): Promise<string> {
  const id = await lenient.subscribe(await plant(receiver))
  await lenient.publish()
  await until(async () => (await lenient.deliveries(id))[0]?.attempts.length === 1)
  return id
}

const answering = (status: number) =>
  plant(startAnswering((response) => void response.writeHead(status).end()))

const verifying = (how: Omit<Parameters<typeof startVerifying>[0], 'secret'> = {}) =>
  plant(startVerifying({ secret: lenient.secret, ...how }))
const behind = async (change: Parameters<typeof startChangingProxy>[1]) =>
  plant(startChangingProxy(await verifying(), change))

/** Faults of a receiver on this machine: how to make one, and what the doctor then prints. */
const faults: [what: string, Fault, url: () => Promise<string>, says: RegExp][] = [
  [
    'a port on which nothing listens',
    'connection-refused',
    closedPort,
    /The address is allowed, but .* accepts no connection/,
  ],
  ['a self-signed certificate', 'tls', () => plant(startSelfSigned()), /certificate is self-signed/],
  [
    'an https address of a port without TLS',
    'tls',
    async () => (await answering(204)).replace('http:', 'https:'),
    /speaks no TLS/,
  ],
  ['a receiver that never answers', 'time-out', () => plant(startAnswering(() => {})), /no response within/],
  ['a receiver that hangs up', 'no-answer', () => plant(startHangingUp()), /ended the connection without/],
  [
    'another secret',
    'wrong-secret',
    () => plant(startVerifying({ secret: 'another' })),
    /Compare the secrets/,
  ],
  [
    'a proxy that rewrites bodies',
    'body-changed',
    () => behind({ body: indented }),
    /Verify the raw bytes.* a proxy before it changes/s,
  ],
  [
    'a proxy that removes a header',
    'headers-missing',
    () => behind({ without: 'signature' }),
    /removes headers/,
  ],
  [
    'a clock that is ahead',
    'clock',
    () => verifying({ aheadMs: 7 * 60_000 }),
    /The clock of the receiver is 7 minutes ahead of that of the service/,
  ],
]

function indented(body: string): string {
  return JSON.stringify(JSON.parse(body), null, 2)
}

/** Examines a subscription that has one fault. @param says matches the fault or what to do */
async function expectFault(side: typeof lenient, id: string, fault: Fault, says: RegExp): Promise<void> {
  const { code, healthy, findings } = await examine(side, id)
  expect([code, healthy, findings.map((each) => each.fault)]).toEqual([1, false, [fault]])
  expect([findings[0]!.found, ...findings[0]!.remedies].join('\n')).toMatch(says)
}

describe('the doctor names', () => {
  test.each(faults)('%s', async (_, fault, url, says) => {
    await expectFault(lenient, await lenient.subscribe(await url()), fault, says)
  })

  test('a host name that is not in the DNS', async () => {
    const id = await strict.subscribe('https://nowhere.test/hook')
    await expectFault(strict, id, 'dns', /^The name nowhere\.test has no address/)
  })

  test('a host name that resolves to a private network', async () => {
    const id = await strict.subscribe('https://moved.test/hook')
    names.names.set('moved.test', ['10.0.0.7'])
    const says = /refuses this address by its rules: .*private or reserved address/
    await expectFault(strict, id, 'address-refused', says)
  })

  test('a receiver that was slow a moment ago, even if it now answers in time', async () => {
    const receiver = startAnswering((response, attempt) => {
      if (attempt > 1) response.writeHead(204).end()
    })
    const says = /slow at times: One attempt at deliveries timed out/
    await expectFault(lenient, await attempted(receiver), 'slow', says)
  })

  test('an event that the receiver refuses, even if it accepts the ping', async () => {
    const receiver = startAnswering(
      (response, attempt) => void response.writeHead(attempt === 1 ? 500 : 204).end('out of\u0007 order'),
    )
    const says =
      /The ping is accepted, but delivery \d+ with the events 1-1 was answered with 500 .*: out of\W order/
    await expectFault(lenient, await attempted(receiver), '5xx', says)
  })

  test('a disabled subscription after the fault that disabled it, and enables it once that fault is repaired', async () => {
    let isGone = true
    const receiver = startAnswering((response) => void response.writeHead(isGone ? 410 : 204).end())
    const id = await attempted(receiver)
    const both = await examine(lenient, id, '--enable')
    expect([both.enabled, both.findings.map(({ fault }) => fault)]).toEqual([false, ['4xx', 'disabled']])
    isGone = false
    await expectFault(lenient, id, 'disabled', /disabled since \d{4}-.*Z: the receiver answered 410 Gone\./)
    expect(await examine(lenient, id, '--enable')).toMatchObject({ code: 0, healthy: true, enabled: true })
    await until(async () => (await lenient.deliveries(id))[0].state === 'delivered')
  })
})

describe('the doctor finds no fault', () => {
  test('in a receiver that verifies and accepts deliveries', async () => {
    const id = await lenient.subscribe(await plant(startVerifying({ secret: lenient.secret })))
    const { code, out, error } = await grandlivre(lenient.env, ['webhook', 'doctor', id])
    expect([code, error]).toEqual([0, ''])
    expect(out).toMatch(/Ping: 204 \(after \d+ ms\)\nDeliveries: none so far\n\nHealthy: /)
  })

  test('in a subscription without an address, and does not ping it', async () => {
    const id = await lenient.subscribe(null)
    expect(await examine(lenient, id)).toMatchObject({ code: 0, healthy: true, ping: null })
  })
})

test('the output names the fault and the remedy, and the exit code shows that there is a fault', async () => {
  const id = await lenient.subscribe(await answering(404))
  const { code, out, error } = await grandlivre(lenient.env, ['webhook', 'doctor', id])
  expect([code, error]).toEqual([1, `Subscription ${id} does not receive as it should: 4xx\n`])
  expect(out).toContain('\nFault: 4xx\n  The receiver answers 404.\n  - Correct the path in postUrl')
})

test('the list of subscriptions shows ids, addresses and kinds', async () => {
  const id = await strict.subscribe('https://moved.example/hook')
  const { out } = await grandlivre(strict.env, ['webhook', 'list'])
  expect(out).toMatch(/^id +address +folders +events$/m)
  expect(out).toMatch(new RegExp(`^${id} +https://moved.example/hook +111 +document$`, 'm'))
  const { out: lines } = await grandlivre(strict.env, ['webhook', 'list', '--json'])
  expect(jsonLines(lines)).toContainEqual({
    id: Number(id),
    postUrl: 'https://moved.example/hook',
    onEvents: ['document'],
    accountingFolderId: ['111'],
    thirdPartyId: expect.any(Number),
  })
})
