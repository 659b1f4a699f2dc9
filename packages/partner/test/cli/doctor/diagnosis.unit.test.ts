/** The faults that the doctor concludes from reports of the service. No receiver is needed. */
import { describe, expect, test } from 'vitest'
import { noResponseFaults } from '../../../../../src/webhooks/dispatch/fault.ts'
import {
  diagnose,
  type ReceiverReport,
  remediesOfTls,
  slowFromMs,
} from '../../../src/cli/doctor/diagnosis.ts'
import type { WebhookDelivery as Delivery, WebhookPing as Ping } from '../../../src/client/api/routes.ts'

const now = Date.UTC(2026, 10, 22, 12)
const minute = 60_000

function seen(ping: Partial<Ping>, deliveries: Delivery[] = []): ReceiverReport {
  const attempt = { at: now - 10, status: 204, milliseconds: 10, error: null, answer: '' }
  const given = { ...attempt, fault: null, receiverDate: now, disabled: null, ...ping }
  return { postUrl: 'https://hooks.example.com/ledger', ping: given, deliveries, now }
}

const faultsOf = (...given: Parameters<typeof seen>) => diagnose(seen(...given)).map(({ fault }) => fault)

const delivery = (changed: Partial<Delivery>): Delivery => ({
  id: '4711',
  sequence: '1-2',
  events: 2,
  state: 'pending',
  replay: false,
  createdAt: now - minute,
  finishedAt: null,
  nextAttemptAt: now + minute,
  attempts: [],
  ...changed,
})

const attempt = (status: number | null, at: number, error: string | null = null) => ({
  at,
  number: 1,
  status,
  milliseconds: 10_000,
  error,
  answer: status === null ? null : '',
})

describe('a receiver', () => {
  test('is healthy if it accepts in time', () => {
    for (const status of [200, 201, 204, 299]) expect(faultsOf({ status })).toEqual([])
    expect(faultsOf({ milliseconds: slowFromMs - 1 })).toEqual([])
  })

  test('is slow if it takes at least half of the time that a delivery may take', () => {
    expect(slowFromMs).toBe(5_000)
    expect(faultsOf({ milliseconds: slowFromMs })).toEqual(['slow'])
  })

  test('is slow if a delivery timed out within the last day', () => {
    const late = 'no response within 10 seconds'
    const deliveredAfter = (ago: number, error: string) =>
      delivery({
        state: 'delivered',
        attempts: [attempt(null, now - ago, error), attempt(204, now - ago + 10)],
      })
    expect(faultsOf({}, [deliveredAfter(23 * 60 * minute, late)])).toEqual(['slow'])
    expect(faultsOf({}, [deliveredAfter(25 * 60 * minute, late)])).toEqual([])
    expect(faultsOf({}, [deliveredAfter(minute, 'connect ECONNREFUSED')])).toEqual([])
  })

  test.each(noResponseFaults)('without a response has the fault that the service saw: %s', (fault) => {
    const [found, ...others] = diagnose(seen({ status: null, error: 'why', fault, receiverDate: null }))
    expect([found?.fault, others]).toEqual([fault, []])
    expect(found?.found).toContain('why')
    expect(found?.remedies.length).toBeGreaterThan(0)
  })

  test('that gives no response is not healthy, even if this version does not know the reason', () => {
    expect(faultsOf({ status: null, error: 'why', fault: 'quota' as 'dns' })).toEqual(['no-answer'])
  })

  test.each([301, 302, 303, 307, 308])('that answers %i is reported as redirecting', (status) => {
    expect(faultsOf({ status })).toEqual(['redirect'])
  })

  test('that answers 4xx or 5xx has a distinct fault, which explains the status', () => {
    const meanings = [400, 401, 403, 404, 405, 410, 413, 415, 422, 429].map((status) => {
      const [found] = diagnose(seen({ status }))
      expect(found?.fault).toBe('4xx')
      return found!.remedies[0]
    })
    // 400, 401, 403 and 422 have the same first remedy.
    expect(new Set(meanings).size).toBe(7)
    for (const status of [500, 502, 503, 504]) expect(faultsOf({ status })).toEqual(['5xx'])
  })

  test('that states a reason has the fault for that reason with any status from 400 on', () => {
    for (const [reason, fault] of [
      ['signature-missing', 'headers-missing'],
      ['date-missing', 'headers-missing'],
      ['webhook-headers-missing', 'headers-missing'],
      ['signature-wrong', 'wrong-secret'],
      ['body-changed', 'body-changed'],
      ['body-without-events', 'body-changed'],
      ['date-too-old', 'clock'],
      ['date-in-future', 'clock'],
    ])
      for (const status of [400, 401, 403, 500])
        expect(faultsOf({ status, answer: JSON.stringify({ reason, message: 'x' }) })).toEqual([fault])
    for (const answer of ['{"reason":"toString"}', '{"reason":7}', '{', 'null', '"signature-wrong"'])
      expect(faultsOf({ status: 401, answer })).toEqual(['4xx'])
    const thrown = 'TypeError: verifyWebhook needs the raw body: its text or bytes, not a parsed value'
    expect(faultsOf({ status: 500, answer: thrown })).toEqual(['body-changed'])
  })

  test('that refuses without a reason has a wrong clock if its Date header is off by more than five minutes', () => {
    for (const status of [401, 403]) {
      expect(faultsOf({ status, receiverDate: now + 6 * minute })).toEqual(['clock'])
      expect(faultsOf({ status, receiverDate: now - 6 * minute })).toEqual(['clock'])
      expect(faultsOf({ status, receiverDate: now + 4 * minute })).toEqual(['4xx'])
      expect(faultsOf({ status, receiverDate: null })).toEqual(['4xx'])
    }
    expect(faultsOf({ status: 404, receiverDate: now + 6 * minute })).toEqual(['4xx'])
    expect(faultsOf({ receiverDate: now + 6 * minute })).toEqual([])
  })
})

test('the diagnosis names which of three clocks differs from the other two', () => {
  const told = (receiverDate: number | null, own: number) => {
    const ping = { status: 401, answer: '{"reason":"date-too-old"}', receiverDate }
    return diagnose({ ...seen(ping), now: own })[0]!.remedies.join('\n')
  }
  expect(told(now + 7 * minute, now)).toMatch(/^The clock of the receiver is 7 minutes ahead of[^\n]*$/)
  expect(told(now - 3 * 60 * minute, now)).toMatch(/^The clock of the receiver is 3 hours behind/)
  // The receiver and this machine agree: the service is wrong.
  expect(told(now + 7 * minute, now + 7 * minute)).toMatch(
    /\nThe clock of this machine is 7 minutes ahead of/,
  )
  expect(told(null, now)).toMatch(/^The clock that the receiver compares with is wrong[^\n]*$/)
})

describe('a waiting delivery', () => {
  const refused = (status: number) => delivery({ attempts: [attempt(status, now - minute)] })

  test('shows the last answer of its receiver, even if the receiver accepts the ping', () => {
    expect(faultsOf({}, [refused(500)])).toEqual(['5xx'])
    expect(faultsOf({}, [refused(404)])).toEqual(['4xx'])
    expect(faultsOf({}, [refused(302)])).toEqual(['redirect'])
    expect(diagnose(seen({}, [refused(500)]))[0]!.remedies[0]).toContain('2026-11-22T12:01:00Z')
  })

  test('is no fault if it was not tried yet, got no response or has ended', () => {
    expect(faultsOf({}, [delivery({})])).toEqual([])
    expect(faultsOf({}, [delivery({ attempts: [attempt(null, now, 'connect ECONNREFUSED')] })])).toEqual([])
    expect(faultsOf({}, [{ ...refused(500), state: 'failed', nextAttemptAt: null }])).toEqual([])
  })
})

test('a disabled subscription is reported after the fault that must be repaired first', () => {
  const disabled = { since: now - minute, reason: 'the receiver answered 410 Gone' }
  expect(faultsOf({ disabled })).toEqual(['disabled'])
  expect(faultsOf({ disabled, status: 500 })).toEqual(['5xx', 'disabled'])
  const [found] = diagnose(seen({ disabled }))
  expect(found!.found).toBe(
    'The subscription is disabled since 2026-11-22T11:59:00Z: the receiver answered 410 Gone. Nothing is delivered',
  )
  expect(found!.remedies[0]).toMatch(/^grandlivre webhook doctor <id> --enable/)
  expect(diagnose(seen({ disabled, status: 500 }))[1]!.remedies[0]).toMatch(/^Mend the fault above first/)
})

test.each([
  [
    "Hostname/IP does not match certificate's altnames: Host: a. is not in the cert's altnames: DNS:b",
    /other names/,
  ],
  ['certificate has expired', /has expired/],
  ['self-signed certificate', /self-signed/],
  ['unable to verify the first certificate', /full chain/],
  ['unable to get local issuer certificate', /full chain/],
  [
    'write EPROTO 00:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number',
    /speaks no TLS/,
  ],
  ['Client network socket disconnected before secure TLS connection was established', /^openssl s_client/],
])('TLS: %s', (error, remedy) => {
  const remedies = remediesOfTls(error, 'hooks.example.com:8443')
  expect(remedies[0]).toMatch(remedy)
  expect(remedies.at(-1)).toContain('-connect hooks.example.com:8443 -servername hooks.example.com')
})

test.each([
  ['hooks.example.com', '-connect hooks.example.com:443 -servername hooks.example.com shows'],
  ['[2001:db8::7]:8443', '-connect [2001:db8::7]:8443 shows'],
  ['203.0.113.7', '-connect 203.0.113.7:443 shows'],
])('the command that shows the certificate of %s can be run unchanged', (host, words) => {
  expect(remediesOfTls('why', host)).toEqual([`openssl s_client ${words} the certificate and its chain.`])
})
