/**
 * Sends one event at once, so that its owner sees whether a receiver is reachable and verifies signatures
 * (docs/spec/webhooks.md#ping). A ping is not a delivery: it has no number and is not repeated. If it arrives, it wakes
 * the subscription. Its target passes the same checks as that of every delivery.
 */
import type { ClientBase, Pool } from 'pg'
import type { MasterKeys } from '../../auth/secrets.ts'
import { limits } from '../../config.ts'
import { inTenant, whileDelivering } from '../../db/pool.ts'
import { AppError } from '../../errors.ts'
import type { TraceHeaders } from '../../telemetry/telemetry.ts'
import { notificationOf } from '../body.ts'
import { isSuccess } from '../dispatch/delivery.ts'
import { type HttpToSubscribers, post } from '../dispatch/post.ts'
import { ensureSigningSecret, lockSealedSecrets, openSecrets } from '../signing-secrets.sql.ts'
import {
  type AllowedPing,
  allowPing,
  lockOwnSubscription,
  type Owner,
  type Subscription,
  wakeSubscription,
} from '../subscriptions.sql.ts'

interface PingServices {
  /** Connects as the service role. */
  database: Pool
  deliveries: HttpToSubscribers
  masterKeys: MasterKeys
  /** Trace headers of the request that asks for the ping. */
  trace?: TraceHeaders | undefined
}

export type Pinged = Awaited<ReturnType<typeof sendPing>>

/**
 * Sends a ping. Holds no database connection while the receiver answers.
 * @throws {AppError} ERR-WEBHOOK-NOT-FOUND, ERR-WEBHOOK-PULL-ONLY, ERR-TOO-MANY-REQUEST
 */
export async function ping(services: PingServices, owner: Owner, subscriptionId: string): Promise<Pinged> {
  const allowed = await inTenant(services.database, owner.schemaId, async (client) =>
    preparePing(client, await lockOwnSubscription(client, owner, subscriptionId)),
  )
  return sendPing(services, subscriptionId, allowed)
}

/**
 * The first half of a ping. Runs in the transaction that has locked the subscription.
 * @throws {AppError} ERR-WEBHOOK-PULL-ONLY, ERR-TOO-MANY-REQUEST
 */
export async function preparePing(
  client: ClientBase,
  { id, postUrl }: Pick<Subscription, 'id' | 'postUrl'>,
): Promise<AllowedPing & { postUrl: string }> {
  if (postUrl === null) throw new AppError('ERR-WEBHOOK-PULL-ONLY')
  const allowed = await allowPing(client, id, limits.pingEveryMs)
  if (allowed) return { postUrl, ...allowed }
  const message = 'A subscription may be pinged once a second'
  throw new AppError('ERR-TOO-MANY-REQUEST', { message, headers: { 'Retry-After': '1' } })
}

/** The second half of a ping. Runs after that transaction. @throws {AppError} ERR-WEBHOOK-NOT-FOUND */
export async function sendPing(
  { database, deliveries, masterKeys, trace }: PingServices,
  subscriptionId: string,
  { postUrl, deliveryId, scope, disabled }: Awaited<ReturnType<typeof preparePing>>,
) {
  // Only the dispatcher's transactions see the secret of the third party.
  const sealed = await whileDelivering(database, async (client) => {
    const secrets = await lockSealedSecrets(client, subscriptionId)
    if (!secrets) throw new AppError('ERR-WEBHOOK-NOT-FOUND')
    await ensureSigningSecret(client, subscriptionId, secrets, masterKeys)
    return secrets
  })
  /** When the ping was sent, epoch milliseconds. */
  const at = Date.now()
  const event = { id: `ping ${deliveryId}`, name: 'ping', operation: 'VOID', scope, data: {}, createdAt: at }
  const body = Buffer.from(`[${notificationOf(subscriptionId, event)}]`)
  const unnumbered = { id: deliveryId, body, sequence: undefined, epoch: undefined }
  const request = { postUrl, ...unnumbered, date: at, trace, ...openSecrets(sealed, masterKeys) }
  // Nothing aborts a ping: its time-out is shorter than the time that a stopping process gives to running requests.
  const response = await post(deliveries, request, new AbortController().signal)
  if (isSuccess(response.status))
    await whileDelivering(database, (client) => wakeSubscription(client, subscriptionId, 'change'))
  return { at, disabled, ...response }
}
