/** What all routes on subscriptions share: who may call them, and the subscription that their path names. */
import { z } from '@hono/zod-openapi'
import { readId } from '../../../db/literal.ts'
import { AppError } from '../../../errors.ts'
import { idSchema } from '../../query.ts'

export const routeAccess = {
  levels: ['api', 'firm'],
  groups: ['webhooks'],
  closedToFirmCustomers: true,
} as const

/** The parameter of the path. */
export const subscriptionId = z.object({ id: z.string().openapi({ ...idSchema, example: '1000' }) })

/** Of routes on one subscription, without parameters. */
export const ofOne = { ...routeAccess, query: z.strictObject({}), params: subscriptionId }

export const uncached = { 'Cache-Control': 'private, no-store' }

/** A malformed id names no subscription. @throws {AppError} ERR-WEBHOOK-NOT-FOUND */
export function readSubscriptionId(given: string | undefined): string {
  return readId(given ?? '') ?? notFound()
}

export function notFound(): never {
  throw new AppError('ERR-WEBHOOK-NOT-FOUND')
}
