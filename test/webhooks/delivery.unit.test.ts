/** The decisions about a delivery, and its bytes, without a database or network. */
import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { signatureOf } from '../../packages/contract/src/webhook-delivery.ts'
import { limits } from '../../src/config.ts'
import { type NumberedEvent, packBatch, webhookId } from '../../src/webhooks/body.ts'
import { type Attempted, decide, retryAfterMs } from '../../src/webhooks/dispatch/delivery.ts'
import { tries } from '../support/changes/properties.ts'

const now = Date.parse('2026-11-21T12:00:00Z')
const hour = 3_600_000
const day = 24 * hour
const failed: Attempted = { status: 500, retryAfter: null, attempts: 1, failingSince: null, plannedAt: null }
const retried = (afterMs: number) => ({ state: 'pending', nextAttemptAt: now + afterMs, disable: null })
const disabled = (disable: string) => ({ state: 'pending', nextAttemptAt: now, disable })

describe('after an attempt', () => {
  test('only a 2xx status is a success', () => {
    for (const status of [200, 201, 204, 299])
      expect(decide({ ...failed, status }, now, 0)).toEqual({ state: 'delivered' })
    for (const status of [null, 100, 199, 300, 302, 400, 401, 404, 429, 500, 503])
      expect(decide({ ...failed, status }, now, 0)).toMatchObject({ state: 'pending' })
  })

  test('jitter adds up to a tenth of the delay', () => {
    const at = (random: number) => decide({ ...failed, attempts: 4 }, now, random)
    expect([0, 0.5, 0.999].map(at)).toEqual([600_000, 630_000, 659_940].map(retried))
  })

  test('410 disables the subscription, and the delivery waits for it', () => {
    expect(decide({ ...failed, status: 410 }, now, 0)).toEqual(disabled('the receiver answered 410 Gone'))
  })

  test('Retry-After applies if it exceeds the delay of the table, up to a day', () => {
    const answered = (retryAfter: string) =>
      decide({ ...failed, status: 503, retryAfter, attempts: 2 }, now, 0)
    expect(answered('10')).toEqual(retried(30_000))
    expect(answered('3600')).toEqual(retried(hour))
    expect(answered('999999999')).toEqual(retried(day))
    expect(answered('Sat, 21 Nov 2026 14:00:00 GMT')).toEqual(retried(2 * hour))
    expect(answered('Thu, 31 Dec 2099 14:00:00 GMT')).toEqual(retried(day))
  })

  test('an invalid, negative or past Retry-After adds no delay', () => {
    for (const header of [
      null,
      '',
      '-5',
      '1.5',
      'soon',
      '1e3',
      'Fri, 20 Nov 2026 12:00:00 GMT',
      '9'.repeat(40),
    ])
      expect(retryAfterMs(header, now)).toBe(0)
  })

  test('a failed attempt after five days without success disables the subscription', () => {
    const failing = (since: number, attempts = 3) =>
      decide({ ...failed, attempts, failingSince: now - since }, now, 0)
    expect(failing(5 * day - 1)).toMatchObject({ state: 'pending', disable: null })
    expect(failing(5 * day)).toEqual(disabled('no delivery has succeeded for five days'))
    expect(failing(5 * day, 12)).toEqual(failing(5 * day))
  })
})

describe('the body of a delivery', () => {
  const event = (id: string, data: unknown = { id }): NumberedEvent => ({
    id,
    name: 'document',
    operation: 'CREATE',
    scope: { schemaId: 100 },
    data,
    createdAt: 1_795_255_463_892,
    schemaId: '100',
    epoch: 5,
    sequence: Number(id) + 40,
  })

  test('holds exactly the specified form of its events', () => {
    const { body, ...batch } = packBatch('7', [event('1'), { ...event('3'), sequence: 42 }])
    expect(batch).toEqual({
      schemaId: '100',
      epoch: 5,
      firstEvent: '1',
      lastEvent: '3',
      events: 2,
      firstSequence: 41,
      lastSequence: 42,
    })
    expect(JSON.parse(String(body))).toEqual(
      ['1', '3'].map((id) => ({
        name: 'document',
        operation: 'CREATE',
        scope: { schemaId: 100 },
        data: { id },
        webhookId: webhookId('7', id),
        createdAt: 1_795_255_463_892,
      })),
    )
  })

  test('has the same bytes after it is parsed and serialized, and a valid signature, for hostile data', () => {
    const hostile = [
      JSON.parse('{"2":1,"b":{"10":1,"9":2,"01":3,"a":4},"1":0}'),
      JSON.parse('{"__proto__":{"x":1},"constructor":{"prototype":{}},"toString":1}'),
      { zero: -0, small: 1e-7, large: 1e21, exact: 0.1, max: Number.MAX_SAFE_INTEGER, not: Number.NaN },
      { lone: '\ud800', pair: '\u{1f600}', low: '\udc00', nul: '\u0000', sep: '\u2028\u2029', bom: '\ufeff' },
      { quotes: '"\\/\b\f\n\r\t', html: '</script><!--', unicode: 'é e\u0301 ﬁ İ', empty: '', '': 0 },
      [[], {}, null, true, [[[[]]]]],
    ]
    for (const data of hostile) {
      const { body } = packBatch('7', [event('1', data)])
      const text = body.toString('utf8')
      expect(Buffer.from(JSON.stringify(JSON.parse(text)))).toEqual(body)
      const restored = JSON.parse(text)
      expect(restored[0].data).toEqual(JSON.parse(JSON.stringify(data)))
      const documented = createHmac('sha256', 'glv_secret_x')
        .update(`${JSON.stringify(restored)}1795255463892`)
        .digest('hex')
      expect(signatureOf('glv_secret_x', body, '1795255463892')).toBe(documented)
    }
  })

  test('has the same bytes after it is parsed and serialized, for any JSON', () => {
    const isStable = fc.property(fc.json(), (json) => {
      const text = packBatch('7', [event('1', JSON.parse(json))]).body.toString('utf8')
      expect(JSON.stringify(JSON.parse(text))).toBe(text)
    })
    fc.assert(isStable, tries(1_000))
  })

  test('has at most a hundred events, and stays below the size limit unless a single event exceeds it', () => {
    const many = Array.from({ length: 130 }, (_, index) => event(String(index + 1)))
    expect(packBatch('7', many)).toMatchObject({ events: 100, lastEvent: '100' })
    const heavy = ['1', '2', '3'].map((id) => event(id, { text: 'é'.repeat(20_000) }))
    const packed = packBatch('7', heavy)
    expect(packed).toMatchObject({ events: 2, lastEvent: '2' })
    expect(packed.body.length).toBeLessThan(limits.deliveryBytesMax)
    expect(packBatch('7', [event('1', { text: 'x'.repeat(200_000) }), event('2')])).toMatchObject({
      events: 1,
    })
  })

  test('ends before a gap in the numbers, and before an event of another schema', () => {
    const [first, second, third] = ['1', '2', '3'].map((id) => event(id))
    expect(packBatch('7', [first!, third!])).toMatchObject({ events: 1, firstSequence: 41, lastSequence: 41 })
    const elsewhere = { ...second!, schemaId: '101' }
    expect(packBatch('7', [first!, elsewhere])).toMatchObject({ events: 1, schemaId: '100' })
    expect(packBatch('7', [elsewhere, third!])).toMatchObject({ events: 1, schemaId: '101', lastEvent: '2' })
  })

  test('gives an event the same webhookId at every attempt; each event and each subscription has a different one', () => {
    expect(webhookId('7', '1')).toBe(webhookId('7', '1'))
    expect(
      new Set([webhookId('7', '1'), webhookId('7', '2'), webhookId('8', '1'), webhookId('71', '')]).size,
    ).toBe(4)
    for (const id of ['1', '2', '99999'])
      expect(webhookId('7', id)).toMatch(
        /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      )
  })
})
