import { spawn } from 'node:child_process'
import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { verifyWebhook, type WebhookRefusal, type WebhookRequest } from 'grandlivre/webhooks'
import { describe, expect, test } from 'vitest'
import { publish } from '../../../../src/events/publish.ts'
import { forTests } from '../../../../test/support/for-tests.ts'
import { createTenants, credentials, folders } from '../../../../test/support/ledgers/tenants.ts'
import { environment } from '../../../../test/support/process.ts'
import { createTestDatabase } from '../../../../test/support/servers/database.ts'
import { startTestService } from '../../../../test/support/service.ts'
import { documentEvent } from '../../../../test/support/stages/webhooks.ts'
import { until } from '../../../../test/support/until.ts'

const secret = 'glv_secret_a'
const now = 1_795_262_400_000
const signingSecret = `whsec_${Buffer.from(Array.from({ length: 32 }, (_, byte) => byte)).toString('base64')}`
const events = [
  {
    name: 'document',
    operation: 'CREATE',
    scope: { schemaId: 100 },
    data: { id: '7', kind: 'AF', name: 'Facture n° 12 – "été" \u2028😀' },
    webhookId: 'b7f4e0e2-7d5c-8f3a-9d1e-0123456789ab',
    createdAt: now - 40,
  },
]
const body = JSON.stringify(events)

function sign(text: string | Buffer, date: number | string, key = secret): string {
  return createHmac('sha256', key).update(text).update(String(date)).digest('hex')
}

function delivery(changed: Partial<WebhookRequest> = {}): WebhookRequest {
  const headers = { date: String(now), signature: sign(body, now) }
  return { secret, headers, body, now, ...changed }
}

/** What the verifier returns without the headers of Standard Webhooks. */
const accepted = (of: object[]) => ({
  valid: true,
  events: of,
  sentAt: now,
  deliveryId: null,
  sequence: null,
  missing: null,
  epoch: null,
})

describe('a delivery is accepted', () => {
  test('with the signature of its body and date', () => {
    expect(verifyWebhook(delivery())).toEqual(accepted(events))
    // A fixed value, so that both sides cannot be wrong in the same way.
    const known = {
      date: '1795262400000',
      signature: '1846004c0487e0453ec8a89b17989171e29697143e3f66739d90af3cf951c71f',
    }
    expect(verifyWebhook({ secret, headers: known, body: '[]', now })).toEqual(accepted([]))
  })

  test('as text or bytes, with headers from fetch or node:http and in any letter case', () => {
    const signature = sign(body, now)
    const forms: WebhookRequest['headers'][] = [
      new Headers({ date: String(now), signature }),
      { host: 'x', date: String(now), signature },
      { Date: String(now), Signature: signature.toUpperCase() },
    ]
    for (const headers of forms)
      for (const form of [body, Buffer.from(body), new TextEncoder().encode(body)])
        expect(verifyWebhook(delivery({ headers, body: form }))).toEqual(accepted(events))
  })

  test('with the old and the new secret during a rotation', () => {
    for (const key of ['old', 'new']) {
      const headers = { date: String(now), signature: sign(body, now, key) }
      expect(verifyWebhook(delivery({ headers, secret: ['old', 'new'] })).valid).toBe(true)
      expect(verifyWebhook(delivery({ headers, secret: 'new' })).valid).toBe(key === 'new')
    }
  })

  test('if its date is within five minutes of now, or within the tolerance that the receiver sets', () => {
    const fiveMinutes = 300_000
    const verifiedAfter = (later: number, toleranceMs?: number) =>
      verifyWebhook(delivery({ now: now + later, ...(toleranceMs === undefined ? {} : { toleranceMs }) }))
    expect([verifiedAfter(fiveMinutes).valid, verifiedAfter(-fiveMinutes).valid]).toEqual([true, true])
    expect(verifiedAfter(fiveMinutes + 1)).toMatchObject({ valid: false, reason: 'date-too-old' })
    expect(verifiedAfter(-fiveMinutes - 1)).toMatchObject({ valid: false, reason: 'date-in-future' })
    expect(verifiedAfter(fiveMinutes + 1, fiveMinutes + 1).valid).toBe(true)
    expect(verifiedAfter(1, 0)).toMatchObject({ valid: false, reason: 'date-too-old' })
    expect(verifyWebhook({ secret, headers: delivery().headers, body })).toMatchObject({ valid: false })
    const date = String(Date.now())
    expect(verifyWebhook({ secret, headers: { date, signature: sign(body, date) }, body }).valid).toBe(true)
  })
})

const reasonOf = (request: WebhookRequest) => {
  const verified = verifyWebhook(request)
  return verified.valid ? 'accepted' : verified.reason
}

describe('a request is refused', () => {
  const date = String(now)
  const signature = sign(body, now)
  const flipped = signature.slice(0, 63) + (Number.parseInt(signature[63]!, 16) ^ 1).toString(16)
  const twice = new Headers({ date, signature })
  twice.append('signature', signature)
  const signatures = [undefined, '', signature.slice(1), `${signature}0`, `0x${signature}`, 'g'.repeat(64)]
  const dates = [undefined, '', 'now', new Date(now).toUTCString(), `-${date}`, `${date}.0`, '1e12']
  const bodies = ['{}', 'null', '', '[', 'text', '[1]', '[{}, null]']
  const wrong: [WebhookRefusal, string, Partial<WebhookRequest>][] = [
    ['signature-wrong', 'a changed body', { body: body.replace('"7"', '"8"') }],
    ['signature-wrong', 'a longer body', { body: `${body} ` }],
    ['signature-wrong', 'another date', { headers: { signature, date: String(now + 1) } }],
    ['signature-wrong', 'another secret', { secret: 'another' }],
    ['signature-wrong', 'one bit of the signature', { headers: { date, signature: flipped } }],
    // The end of the body cannot pass for the start of the date.
    [
      'date-too-old',
      'a digit moved',
      { body: `${body}${date[0]}`, headers: { signature, date: date.slice(1) } },
    ],
    ...signatures.map((bad): [WebhookRefusal, string, Partial<WebhookRequest>] => [
      'signature-missing',
      `the signature ${bad}`,
      { headers: { date, signature: bad } },
    ]),
    ['signature-missing', 'two signatures', { headers: { date, signature: [signature, signature] } }],
    ['signature-missing', 'two cases of letters', { headers: { date, signature, Signature: signature } }],
    ['signature-missing', 'a signature appended', { headers: twice }],
    ...[...dates, '9'.repeat(16)].map((bad): [WebhookRefusal, string, Partial<WebhookRequest>] => [
      'date-missing',
      `the date ${bad}`,
      { headers: { date: bad, signature: sign(body, bad ?? '') } },
    ]),
    ...bodies.map((text): [WebhookRefusal, string, Partial<WebhookRequest>] => [
      'body-without-events',
      `the signed body ${text}`,
      { body: text, headers: { date, signature: sign(text, now) } },
    ]),
  ]
  test.each(wrong)('%s: %s', (reason, _, changed) => {
    expect(reasonOf(delivery(changed))).toBe(reason)
  })
})

describe('with the signing secret of the subscription', () => {
  const standard = (changed: Record<string, string | undefined> = {}, id = '4711', text = body) => {
    const timestamp = String(now / 1000)
    const key = Buffer.from(signingSecret.slice('whsec_'.length), 'base64')
    const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${text}`).digest('base64')
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
      'webhook-sequence': '1042-1061',
      'webhook-epoch': '583920114',
      ...changed,
    }
    return { signingSecret, headers, body: text, now } satisfies WebhookRequest
  }
  test('a delivery is accepted, also by one of several signatures or secrets', () => {
    const delivered = {
      ...accepted(events),
      deliveryId: '4711',
      sequence: { first: 1042, last: 1061 },
      epoch: 583920114,
    }
    const request = standard()
    expect(verifyWebhook(request)).toEqual(delivered)
    // A fixed value, so that both sides cannot be wrong in the same way.
    expect(request.headers['webhook-signature']).toBe('v1,JS4laFjAWiPR30C+nUIShfQ3lxcmopzpDBgZL0KKUGc=')
    const own = request.headers['webhook-signature']
    const others = `v1,${'A'.repeat(43)}=`
    for (const both of [`${others} ${own}`, `${own} ${others}`, `v1a,xyz ${own}`])
      expect(reasonOf(standard({ 'webhook-signature': both }))).toBe('accepted')
    expect(reasonOf(standard({ 'webhook-signature': others }))).toBe('signature-wrong')
    const otherSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
    expect(reasonOf({ ...standard(), signingSecret: [otherSecret, signingSecret] })).toBe('accepted')
    expect(reasonOf({ ...standard(), signingSecret: otherSecret })).toBe('signature-wrong')
  })

  test('both signatures must be valid if both secrets are given', () => {
    const signed = { date: String(now), signature: sign(body, now) }
    expect(reasonOf({ ...standard(signed), secret })).toBe('accepted')
    expect(reasonOf({ ...standard(signed), secret: 'other' })).toBe('signature-wrong')
    expect(reasonOf({ ...standard(), secret })).toBe('signature-missing')
    expect(reasonOf({ ...standard({ ...signed, 'webhook-id': '4712' }), secret })).toBe('signature-wrong')
  })

  test('a request is refused if a header is missing or changed, or if it is too old', () => {
    for (const header of ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
      for (const bad of [undefined, '', ...(header === 'webhook-id' ? [] : ['x', '-1', '1e9'])])
        expect([header, bad, reasonOf(standard({ [header]: bad }))]).toEqual([
          header,
          bad,
          'webhook-headers-missing',
        ])
    expect(reasonOf(standard({ 'webhook-id': '4712' }))).toBe('signature-wrong')
    expect(reasonOf(standard({ 'webhook-timestamp': String(now / 1000 + 1) }))).toBe('signature-wrong')
    expect(reasonOf({ ...standard(), now: now + 300_001 })).toBe('date-too-old')
    expect(reasonOf({ ...standard(), now: now - 300_001 })).toBe('date-in-future')
    expect(reasonOf(standard({}, '1', '{}'))).toBe('body-without-events')
  })

  test('the digest distinguishes a changed body from a wrong secret', () => {
    const digest = `sha-256=:${createHash('sha256').update(body).digest('base64')}:`
    const request = standard({ 'content-digest': digest })
    expect(reasonOf(request)).toBe('accepted')
    expect(reasonOf({ ...request, body: `${body} ` })).toBe('body-changed')
    const other = `whsec_${Buffer.alloc(32).toString('base64')}`
    expect(reasonOf({ ...request, signingSecret: other })).toBe('signature-wrong')
    // A wrong digest alone does not refuse a delivery, because an intermediary may have changed the header.
    expect(reasonOf(standard({ 'content-digest': 'sha-256=:AAAA:' }))).toBe('accepted')
  })

  test('missing numbers are reported', () => {
    const missingAfter = (lastSequence: number, sequence?: string) => {
      const verified = verifyWebhook({
        ...standard(sequence === undefined ? {} : { 'webhook-sequence': sequence }),
        lastSequence,
      })
      return verified.valid && verified.missing
    }
    expect(missingAfter(1041)).toBeNull()
    expect(missingAfter(1040)).toEqual({ from: 1041, to: 1041 })
    expect(missingAfter(1039)).toEqual({ from: 1040, to: 1041 })
    expect(missingAfter(0, '3-3')).toEqual({ from: 1, to: 2 })
    // A repeat, a replay, a ping, and a header that is not of this service.
    for (const [last, sequence] of [
      [1061, '1042-1061'],
      [2000, '5-9'],
      [5, ''],
      [5, 'x'],
    ] as const)
      expect(missingAfter(last, sequence)).toBeNull()
  })
})

test('calling the verifier without a secret or raw body throws', () => {
  for (const wrong of ['', [], ['a', ''], undefined])
    expect(() => verifyWebhook(delivery({ secret: wrong as string }))).toThrow('needs the partner secret')
  for (const wrong of ['', [], 'whsec_', secret, [signingSecret, ''], [undefined as unknown as string]])
    expect(() => verifyWebhook(delivery({ signingSecret: wrong }))).toThrow('needs the signing secret')
  expect(() => verifyWebhook(delivery({ body: events as never }))).toThrow('needs the raw body')
  // A bigint column is often read as text: '1040' + 1 would be far beyond any number.
  for (const wrong of ['1040', null, Number.NaN, -1, 1.5])
    expect(() => verifyWebhook(delivery({ lastSequence: wrong as number }))).toThrow('lastSequence')
})

describe.each(['receiver-node', 'receiver-hono'])('the example %s', (name) => {
  const database = forTests(createTestDatabase)
  const staff = forTests(() => createTenants(database.ownerUrl))
  const service = forTests(() => startTestService(database, { webhookAllowInsecure: true }))
  let out = ''
  let partnerSecret: string
  const receiver = forTests(async () => {
    partnerSecret = await staff.thirdParty('ONE')
    const env = { ...environment, WEBHOOK_SECRET: partnerSecret, PORT: '0' }
    const child = spawn(process.execPath, [`examples/${name}.ts`], {
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    child.stdout!.setEncoding('utf8').on('data', (text) => {
      out += text
    })
    const ended = once(child, 'close')
    await until(() => out.includes('\n') || child.exitCode !== null)
    return {
      url: out.split('\n')[0]!,
      async stop(): Promise<void> {
        child.kill()
        await ended
      },
    }
  })

  const accepted = () => out.split('\n').slice(1, -1)

  test('accepts a signed event once, and answers 401 with the reason to everything else', async () => {
    const post = async (text: string, headers: Record<string, string>) => {
      const response = await fetch(receiver.url, { method: 'POST', body: text, headers })
      const answer = await response.text()
      return response.status === 401 ? JSON.parse(answer).reason : response.status
    }
    const signed = (text: string, date = Date.now(), key = partnerSecret) => ({
      date: String(date),
      signature: sign(text, date, key),
    })
    expect(await post(body, signed(body))).toBe(204)
    expect(await post(body, signed(body))).toBe(204)
    expect(await post(body, {})).toBe('signature-missing')
    expect(await post(body, signed(body, Date.now(), 'another'))).toBe('signature-wrong')
    expect(await post(body, signed(body, Date.now() - 400_000))).toBe('date-too-old')
    expect(await post(`${body} `, signed(body))).toBe('signature-wrong')
    const other = JSON.stringify([{ ...events[0], webhookId: 'other' }])
    expect(await post(other, signed(other))).toBe(204)
    const line = `document CREATE ${JSON.stringify(events[0]!.data)}`
    await until(() => accepted().length >= 2)
    expect(accepted()).toEqual([line, line])
  })

  test('accepts the deliveries of the service to a subscription created over HTTP', async () => {
    const headers = credentials(await staff.token('ONE', 'firm', folders.first), partnerSecret)
    const response = await fetch(`${service.url}/api/v1/webhook`, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify({ postUrl: `${receiver.url}/ledger`, onEvents: ['document'] }),
    })
    expect(response.status).toBe(201)
    const event = documentEvent('Facture n° 12 – "été" \u2028😀', '111')
    await staff.client.query('begin')
    await publish(staff.client, '100', [event])
    await staff.client.query('commit')
    await until(() => accepted().length >= 3)
    expect(accepted().at(-1)).toBe(`document CREATE ${JSON.stringify(event.data)}`)
  })
})
