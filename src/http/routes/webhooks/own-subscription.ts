/** What all routes on subscriptions share: who may call them, the subscription that their path names, and their answers. */
import { z } from '@hono/zod-openapi'
import type { PoolClient } from 'pg'
import type { Principal } from '../../../auth/principal.ts'
import { readId } from '../../../db/literal.ts'
import { inTenant } from '../../../db/pool.ts'
import { AppError } from '../../../errors.ts'
import { idSchema } from '../../query.ts'
import { type Declared, type NoQuery, type Route, type TokenCall, tokenRoute } from '../../route.ts'

export interface WebhookCall<Query> extends TokenCall<Query> {
  /** The subscription that the path names. A malformed id names none. @throws {AppError} ERR-WEBHOOK-NOT-FOUND */
  subscriptionId: () => string
  /** Runs one transaction in the schema of the caller. */
  inSchema: <T>(run: (client: PoolClient, caller: Principal) => Promise<T>) => Promise<T>
}

export const uncached = { 'Cache-Control': 'private, no-store' }

const subscriptionId = z.object({ id: z.string().openapi({ ...idSchema, example: '1000' }) })

/**
 * A route of the group `webhooks`. What `answer` returns is sent as JSON, with the status of the declaration, unless it
 * already is a response.
 */
export function webhookRoute<Query extends z.ZodObject = NoQuery>({
  answer,
  ...declaration
}: Omit<Declared<Query, never>, 'answer' | 'groups'> & {
  answer: (call: WebhookCall<z.output<Query>>) => unknown
}): Route {
  const [status] = Object.keys(declaration.answers).map(Number)
  return tokenRoute<Query>({
    groups: ['webhooks'],
    closedToFirmCustomers: true,
    ...(declaration.path.includes('{id}') ? { params: subscriptionId } : {}),
    ...declaration,
    answer: async (call) => {
      const { c, services, principal } = call
      const answered = await answer({
        ...call,
        subscriptionId: () => readId(c.req.param('id') ?? '') ?? webhookNotFound(),
        inSchema: (run) =>
          inTenant(services.database, principal.schemaId, (client) => run(client, principal)),
      })
      return answered instanceof Response ? answered : c.json(answered as object, status as 200, uncached)
    },
  } as Declared<Query, TokenCall<z.output<Query>>>)
}

function webhookNotFound(): never {
  throw new AppError('ERR-WEBHOOK-NOT-FOUND')
}
