/**
 * Sends one event at once, so that its owner sees whether a receiver is reachable and verifies signatures
 * (docs/spec/webhooks.md#ping). It is no delivery: it has no number and is not repeated. One that arrives wakes the
 * subscription. It goes through the same checks of its target as every delivery.
 */
import type { ClientBase, Pool } from 'pg'
import type { MasterKeys } from '../../auth/secrets.ts'
import { limits } from '../../config.ts'
import { inTenant, whileDelivering } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'
import type { TraceHeaders } from '../../telemetry/telemetry.ts'
import { notificationOf } from '../body.ts'
import { isSuccess } from '../dispatch/delivery.ts'
import { type DeliveryResponse, type PostParts, post } from '../dispatch/post.ts'
import { lockSealedSecrets } from '../signing/signing-secrets.sql.ts'
import { ensureSigningSecret, openSecrets } from '../signing/signing-secrets.ts'
import {
  type AllowedPing,
  allowPing,
  lockOwnSubscription,
  type Owner,
  type Subscription,
  wakeSubscription,
} from '../subscriptions.sql.ts'

interface PingParts {
  /** Connects as the service role. */
  database: Pool
  deliveries: PostParts
  masterKeys: MasterKeys
  /** Of the request that asks for it. */
  trace?: TraceHeaders | undefined
}

export interface Pinged extends DeliveryResponse {
  /** When it was sent, epoch milliseconds. */
  at: number
  /** Since when (epoch milliseconds) and why deliveries are not sent; null while they are. */
  disabled: { since: number; reason: string } | null
}

/**
 * No connection of the database is held while the receiver answers.
 * @throws {AppError} ERR-WEBHOOK-NOT-FOUND, ERR-WEBHOOK-PULL-ONLY, ERR-TOO-MANY-REQUEST
 */
export async function ping(parts: PingParts, owner: Owner, subscriptionId: string): Promise<Pinged> {
  const allowed = await inTenant(parts.database, owner.schemaId, async (client) => {
    const own = await lockOwnSubscription(client, owner, subscriptionId)
    if (!own) throw new AppError('ERR-WEBHOOK-NOT-FOUND')
    return preparePing(client, own)
  })
  return sendPing(parts, subscriptionId, allowed)
}

type PreparedPing = AllowedPing & { postUrl: string }

/**
 * The first half of a ping, in the transaction that has locked the subscription.
 * @throws {AppError} ERR-WEBHOOK-PULL-ONLY, ERR-TOO-MANY-REQUEST
 */
export async function preparePing(
  client: ClientBase,
  { id, postUrl }: Pick<Subscription, 'id' | 'postUrl'>,
): Promise<PreparedPing> {
  if (postUrl === null) throw new AppError('ERR-WEBHOOK-PULL-ONLY')
  const allowed = await allowPing(client, id, limits.pingEveryMs)
  if (allowed) return { postUrl, ...allowed }
  const message = 'A subscription may be pinged once a second'
  throw new AppError('ERR-TOO-MANY-REQUEST', { message, headers: { 'Retry-After': '1' } })
}

/** The second half, after that transaction. @throws {AppError} ERR-WEBHOOK-NOT-FOUND */
export async function sendPing(
  { database, deliveries, masterKeys, trace }: PingParts,
  subscriptionId: string,
  { postUrl, deliveryId, scope, disabled }: PreparedPing,
): Promise<Pinged> {
  // Only the dispatcher's transactions see the secret of the third party.
  const sealed = await whileDelivering(database, async (client) => {
    const secrets = await lockSealedSecrets(client, subscriptionId)
    if (!secrets) throw new AppError('ERR-WEBHOOK-NOT-FOUND')
    await ensureSigningSecret(client, subscriptionId, secrets, masterKeys)
    return secrets
  })
  const at = Date.now()
  const event = { id: `ping ${deliveryId}`, name: 'ping', operation: 'VOID', scope, data: {}, createdAt: at }
  const body = Buffer.from(`[${notificationOf(subscriptionId, event)}]`)
  const request = {
    postUrl,
    id: deliveryId,
    body,
    sequence: undefined,
    epoch: undefined,
    date: at,
    trace,
    ...openSecrets(sealed, masterKeys),
  }
  // Its time-out is shorter than the time that a stopping process gives to running requests.
  const response = await post(deliveries, request, new AbortController().signal)
  if (isSuccess(response.status))
    await whileDelivering(database, (client) => wakeSubscription(client, subscriptionId, 'change'))
  return { at, disabled, ...response }
}
