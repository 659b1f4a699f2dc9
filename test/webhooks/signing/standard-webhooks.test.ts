/** Deliveries of the whole service, checked by the libraries of Standard Webhooks and by our own verifier. */
import { createHash } from 'node:crypto'
import { verifyWebhook } from 'grandlivre/webhooks'
import { describe, expect, test } from 'vitest'
import { forTests } from '../../support/for-tests.ts'
import type { Received } from '../../support/receiver.ts'
import { verifiers } from '../../support/receivers/standard-webhooks.ts'
import { setReceivingStage } from '../../support/stages/receiving-stage.ts'
import { documentEvent } from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

const stage = forTests(setReceivingStage)

const hostile = 'Facture n° 12 – "été" \u2028😀 \\ </script>'

/** Publishes one event and returns the request that brings it to this path. */
async function delivered(path: string, name: string): Promise<Received> {
  await stage.publish([documentEvent(name, '111')])
  const found = () =>
    stage.receiver.requests(path).find(({ body }) => JSON.parse(String(body))[0].data.id === name)
  await until(() => found() !== undefined)
  return found()!
}

const parsed = ({ body }: Received) => JSON.parse(body.toString('utf8'))

describe.each(Object.entries(verifiers))('the library of Standard Webhooks in %s', (language, verify) => {
  test('accepts a delivery, and refuses it with another secret, body or id', async () => {
    const { signingSecret } = await stage.subscribe(`/${language}`)
    const other = await stage.subscribe(`/other-${language}`)
    const request = await delivered(`/${language}`, hostile)
    expect(parsed(request)[0].data.name).toBe(hostile)
    expect(await verify(signingSecret, request.body, request.headers)).toEqual(parsed(request))
    expect(await verify(other.signingSecret, request.body, request.headers)).toBeUndefined()
    const changed = Buffer.from(request.body.toString('utf8').replace('"DB"', '"PF"'))
    expect(await verify(signingSecret, changed, request.headers)).toBeUndefined()
    for (const header of ['webhook-id', 'webhook-timestamp']) {
      const headers = { ...request.headers, [header]: String(Number(request.headers[header]) + 1) }
      expect(await verify(signingSecret, request.body, headers)).toBeUndefined()
    }
  })

  test('accepts a delivery with the old and with the new secret for 24 hours after a rotation', async () => {
    const path = `/rotated-${language}`
    const { id, signingSecret } = await stage.subscribe(path)
    const { status, body } = await stage.call('POST', `/${id}/rotate-secret`)
    expect([status, body.id]).toEqual([200, id])
    const during = await delivered(path, 'during')
    expect(String(during.headers['webhook-signature']).split(' ')).toHaveLength(2)
    expect(await verify(signingSecret, during.body, during.headers)).toEqual(parsed(during))
    expect(await verify(body.signingSecret, during.body, during.headers)).toEqual(parsed(during))
    const [{ hours }] = await stage.sql(
      `select extract(epoch from retired_at - now()) / 3600 as hours from grandlivre.signing_secrets
       where subscription_id = $1 and retired_at is not null`,
      [id],
    )
    expect(Math.ceil(Number(hours))).toBe(24)
    // The transaction that records a delivery may pick the next one, with the secrets of that moment.
    await until(
      async () =>
        (await stage.sql(`select from grandlivre.deliveries where state <> 'delivered'`)).length === 0,
    )
    await stage.sql(
      `update grandlivre.signing_secrets set retired_at = now() - interval '1 hour' where retired_at is not null`,
    )
    const after = await delivered(path, 'after')
    expect(await verify(signingSecret, after.body, after.headers)).toBeUndefined()
    expect(await verify(body.signingSecret, after.body, after.headers)).toEqual(parsed(after))
  })

  test('accepts a ping', async () => {
    const path = `/ping-${language}`
    const { id, signingSecret } = await stage.subscribe(path)
    expect(await stage.call('POST', `/${id}/ping`)).toMatchObject({ status: 200, body: { status: 204 } })
    const [request] = stage.receiver.requests(path)
    expect(await verify(signingSecret, request!.body, request!.headers)).toEqual(parsed(request!))
  })
})

describe('a delivery', () => {
  test('is accepted by our own verifier, by either signature or by both', async () => {
    const { signingSecret } = await stage.subscribe('/ours')
    const { headers, body } = await delivered('/ours', 'ours')
    for (const secrets of [
      { secret: stage.partnerSecret },
      { signingSecret },
      { secret: stage.partnerSecret, signingSecret },
    ])
      expect(verifyWebhook({ ...secrets, headers, body })).toMatchObject({
        valid: true,
        events: [{ name: 'document', data: { id: 'ours' } }],
        deliveryId: headers['webhook-id'],
      })
    const wrong = {
      secret: stage.partnerSecret,
      signingSecret: `whsec_${Buffer.alloc(32).toString('base64')}`,
    }
    expect(verifyWebhook({ ...wrong, headers, body })).toMatchObject({ reason: 'signature-wrong' })
    expect(verifyWebhook({ signingSecret, headers, body: `${body} ` })).toMatchObject({
      reason: 'body-changed',
    })
    const digest = createHash('sha256').update(body).digest('base64')
    expect(headers['content-digest']).toBe(`sha-256=:${digest}:`)
    expect(stage.receiver.forged).toEqual([])
  })

  test('of a subscription without a signing secret gets one that signs; a rotation shows a new one', async () => {
    const { id } = await stage.subscribe('/before')
    await stage.sql('delete from grandlivre.signing_secrets where subscription_id = $1', [id])
    const [one, two] = [await delivered('/before', 'one'), await delivered('/before', 'two')]
    for (const { headers } of [one, two]) expect(headers['webhook-signature']).toMatch(/^v1,[^ ]{44}$/)
    const stored = await stage.sql('select from grandlivre.signing_secrets where subscription_id = $1', [id])
    expect(stored).toHaveLength(1)
    const { signingSecret } = (await stage.call('POST', `/${id}/rotate-secret`)).body
    const { headers, body } = await delivered('/before', 'three')
    expect(verifyWebhook({ signingSecret, headers, body }).valid).toBe(true)
  })
})

describe('a signing secret', () => {
  test('is 32 random bytes, shown once and stored encrypted', async () => {
    const { id, signingSecret } = await stage.subscribe('/secret')
    expect(signingSecret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(Buffer.from(signingSecret.slice(6), 'base64')).toHaveLength(32)
    const reads = [
      await stage.call('GET', ''),
      await stage.call('GET', `/${id}`),
      await stage.call('GET', '/event/document'),
      await stage.call('PATCH', `/${id}`, []),
    ]
    for (const { status, body } of reads) {
      expect(status).toBe(200)
      expect(JSON.stringify(body)).not.toContain('whsec_')
      expect(JSON.stringify(body)).not.toContain('signingSecret')
    }
    const rows = await stage.sql('select secret_encrypted from grandlivre.signing_secrets')
    expect(rows.length).toBeGreaterThan(0)
    for (const { secret_encrypted } of rows) expect(secret_encrypted.includes('whsec_')).toBe(false)
    expect(stage.service.lines.filter((line) => line.includes(signingSecret.slice(0, 12)))).toEqual([])
  })

  test('is rotated by its owner alone, and at most three times in 24 hours', async () => {
    const { id } = await stage.subscribe('/often')
    expect(await stage.call('POST', `/${id}/rotate-secret`, undefined, stage.stranger)).toMatchObject({
      status: 404,
      body: { error: { code: 'ERR-WEBHOOK-NOT-FOUND' } },
    })
    const secrets = new Set<string>()
    for (let time = 0; time < 3; time++)
      secrets.add((await stage.call('POST', `/${id}/rotate-secret`)).body.signingSecret)
    expect(secrets.size).toBe(3)
    const refused = await stage.call('POST', `/${id}/rotate-secret`)
    expect(refused).toMatchObject({ status: 429, body: { error: { code: 'ERR-TOO-MANY-REQUEST' } } })
    const hours = Number(refused.headers.get('retry-after')) / 3600
    expect([hours > 23, hours <= 24]).toEqual([true, true])
    const request = await delivered('/often', 'four')
    expect(String(request.headers['webhook-signature']).split(' ')).toHaveLength(4)
    for (const signingSecret of secrets)
      expect(verifyWebhook({ signingSecret, headers: request.headers, body: request.body }).valid).toBe(true)
    await stage.sql(
      `update grandlivre.signing_secrets set retired_at = now() - interval '1 hour'
       where subscription_id = $1 and retired_at is not null`,
      [id],
    )
    expect((await stage.call('POST', `/${id}/rotate-secret`)).status).toBe(200)
    const left = await stage.sql('select from grandlivre.signing_secrets where subscription_id = $1', [id])
    expect(left).toHaveLength(2)
  })
})
