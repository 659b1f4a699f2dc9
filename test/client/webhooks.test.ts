import { type ChildProcess, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { verifyWebhook, type WebhookRequest } from 'grandlivre/webhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { publish } from '../../src/events/publish.ts'
import { createTenants, credentials, folders, type Staff } from '../support/ledgers/tenants.ts'
import { environment } from '../support/process.ts'
import { createTestDatabase, type TestDatabase } from '../support/servers/database.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { documentEvent } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const secret = 'glv_secret_a'
const now = 1_795_262_400_000
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

describe('a delivery is accepted', () => {
  test('with the signature of its body and date', () => {
    expect(verifyWebhook(delivery())).toEqual({ valid: true, events, sentAt: now })
    // A fixed value, so that both sides cannot be wrong in the same way.
    const known = {
      date: '1795262400000',
      signature: '1846004c0487e0453ec8a89b17989171e29697143e3f66739d90af3cf951c71f',
    }
    expect(verifyWebhook({ secret, headers: known, body: '[]', now })).toEqual({
      valid: true,
      events: [],
      sentAt: now,
    })
  })

  test('as text or bytes, with headers in the form of fetch, node:http or any other letter case', () => {
    const signature = sign(body, now)
    const forms: WebhookRequest['headers'][] = [
      new Headers({ date: String(now), signature }),
      { host: 'x', date: String(now), signature },
      { Date: String(now), Signature: signature.toUpperCase() },
    ]
    for (const headers of forms)
      for (const form of [body, Buffer.from(body), new TextEncoder().encode(body)])
        expect(verifyWebhook(delivery({ headers, body: form }))).toEqual({ valid: true, events, sentAt: now })
  })

  test('with the old and the new secret during a rotation', () => {
    for (const key of ['old', 'new']) {
      const headers = { date: String(now), signature: sign(body, now, key) }
      expect(verifyWebhook(delivery({ headers, secret: ['old', 'new'] })).valid).toBe(true)
      expect(verifyWebhook(delivery({ headers, secret: 'new' })).valid).toBe(key === 'new')
    }
  })

  test('up to five minutes from now in either direction, or as the receiver allows', () => {
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

describe('a request is refused', () => {
  const refusal = (changed: Partial<WebhookRequest>) => {
    const verified = verifyWebhook(delivery(changed))
    return verified.valid ? 'accepted' : verified.reason
  }
  const date = String(now)
  const signature = sign(body, now)

  test('if anything was changed since it was signed', () => {
    expect(refusal({ body: body.replace('"7"', '"8"') })).toBe('signature-wrong')
    expect(refusal({ body: `${body} ` })).toBe('signature-wrong')
    expect(refusal({ headers: { signature, date: String(now + 1) } })).toBe('signature-wrong')
    // The end of the body cannot pass for the start of the date.
    expect(refusal({ body: `${body}${date[0]}`, headers: { signature, date: date.slice(1) } })).not.toBe(
      'accepted',
    )
    expect(refusal({ secret: 'another' })).toBe('signature-wrong')
    const flipped = (Number.parseInt(signature[63]!, 16) ^ 1).toString(16)
    expect(refusal({ headers: { date, signature: signature.slice(0, 63) + flipped } })).toBe(
      'signature-wrong',
    )
  })

  test('if a header is missing, malformed or repeated', () => {
    for (const bad of [undefined, '', signature.slice(1), `${signature}0`, `0x${signature}`, 'g'.repeat(64)])
      expect([bad, refusal({ headers: { date, signature: bad } })]).toEqual([bad, 'signature-missing'])
    for (const bad of [
      undefined,
      '',
      'now',
      new Date(now).toUTCString(),
      `-${date}`,
      `${date}.0`,
      '1e12',
      '9'.repeat(16),
    ])
      expect([bad, refusal({ headers: { date: bad, signature: sign(body, bad ?? '') } })]).toEqual([
        bad,
        'date-missing',
      ])
    expect(refusal({ headers: { date, signature: [signature, signature] } })).toBe('signature-missing')
    expect(refusal({ headers: { date, signature, Signature: signature } })).toBe('signature-missing')
    const twice = new Headers({ date, signature })
    twice.append('signature', signature)
    expect(refusal({ headers: twice })).toBe('signature-missing')
  })

  test('if its signed body is not a list of events', () => {
    for (const text of ['{}', 'null', '', '[', 'text'])
      expect(refusal({ body: text, headers: { date, signature: sign(text, now) } })).toBe(
        'body-without-events',
      )
  })
})

test('calling the verifier without a secret or raw body throws', () => {
  for (const wrong of ['', [], ['a', ''], undefined])
    expect(() => verifyWebhook(delivery({ secret: wrong as string }))).toThrow('needs the partner secret')
  expect(() => verifyWebhook(delivery({ body: events as never }))).toThrow('needs the raw body')
})

describe.each(['receiver-node', 'receiver-hono'])('the example %s', (name) => {
  let child: ChildProcess
  let out = ''
  let url: string
  let database: TestDatabase
  let staff: Staff
  let service: TestService
  let partnerSecret: string

  beforeAll(async () => {
    database = await createTestDatabase()
    staff = await createTenants(database.ownerUrl)
    partnerSecret = await staff.thirdParty('ONE')
    service = await startTestService(database, { webhookAllowInsecure: true })
    const env = { ...environment, WEBHOOK_SECRET: partnerSecret, PORT: '0' }
    child = spawn(process.execPath, [`examples/${name}.ts`], { env, stdio: ['ignore', 'pipe', 'ignore'] })
    child.stdout!.setEncoding('utf8').on('data', (text) => {
      out += text
    })
    await until(() => out.includes('\n') || child.exitCode !== null)
    url = out.split('\n')[0]!
  })
  afterAll(async () => {
    child?.kill()
    if (child?.exitCode === null && child.signalCode === null) await once(child, 'close')
    await service?.stop()
    await staff?.end()
    await database?.drop()
  })

  const accepted = () => out.split('\n').slice(1, -1)

  test('accepts a signed event once, and answers 401 to everything else', async () => {
    const post = async (text: string, headers: Record<string, string>) => {
      const response = await fetch(url, { method: 'POST', body: text, headers })
      await response.text()
      return response.status
    }
    const signed = (text: string, date = Date.now(), key = partnerSecret) => ({
      date: String(date),
      signature: sign(text, date, key),
    })
    expect(await post(body, signed(body))).toBe(204)
    expect(await post(body, signed(body))).toBe(204)
    expect(await post(body, {})).toBe(401)
    expect(await post(body, signed(body, Date.now(), 'another'))).toBe(401)
    expect(await post(body, signed(body, Date.now() - 400_000))).toBe(401)
    expect(await post(`${body} `, signed(body))).toBe(401)
    const other = JSON.stringify([{ ...events[0], webhookId: 'other' }])
    expect(await post(other, signed(other))).toBe(204)
    const line = `document CREATE ${JSON.stringify(events[0]!.data)}`
    await until(() => accepted().length >= 2)
    expect(accepted()).toEqual([line, line])
  })

  test('accepts what the service delivers to a subscription created over HTTP', async () => {
    const headers = credentials(await staff.token('ONE', 'firm', folders.first), partnerSecret)
    const response = await fetch(`${service.url}/api/v1/webhook`, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify({ postUrl: `${url}/ledger`, onEvents: ['document'] }),
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
