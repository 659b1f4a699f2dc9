/**
 * The routes by which owners create, read, change and delete subscriptions to events (docs/spec/webhooks.md#routes).
 */
import { z } from '@hono/zod-openapi'
import type { PoolClient } from 'pg'
import type { Principal } from '../../../auth/principal.ts'
import { readId } from '../../../db/literal.ts'
import { AppError, invalid } from '../../../errors.ts'
import { eventKinds } from '../../../events/kinds.ts'
import { named } from '../../../formats/items/values.ts'
import { numberInParts } from '../../../webhooks/sequence/numbering.sql.ts'
import { addSigningSecret, rotateSigningSecret } from '../../../webhooks/signing-secrets.sql.ts'
import {
  documentOf,
  foldersFor,
  mergePatchDocument,
  patchDocument,
  patched,
  type SubscriptionDocument,
  skipsToLatest,
  subscriptionDocument,
} from '../../../webhooks/subscription.ts'
import {
  applyChange,
  areFoldersOfFirm,
  countCreatedByTokens,
  deleteSubscription,
  findOwnSubscription,
  insertSubscription,
  listOwnReceivers,
  listOwnSubscriptions,
  lockOwnSubscription,
  needsNumbers,
  type Subscription,
} from '../../../webhooks/subscriptions.sql.ts'
import { type TargetRules, vetTarget } from '../../../webhooks/target.ts'
import { checkBody } from '../../body.ts'
import { idSchema, wordOf } from '../../query.ts'
import { inJson, type Route } from '../../route.ts'
import { type WebhookCall, webhookRoute } from './own-subscription.ts'

const WebhookSubscription = named('WebhookSubscription', {
  id: z.number(),
  postUrl: z.url().nullable().openapi({ description: 'Null: nothing is posted' }),
  onEvents: z.array(z.enum(eventKinds).openapi('EventKind')),
  accountingFolderId: z
    .array(z.string())
    .openapi({ description: 'Folders; empty: the firm, with folders that come later' }),
  thirdPartyId: z.number(),
})

/** Only the answers of a creation and of a rotation show the secret. */
const WithSecret = WebhookSubscription.extend({ signingSecret: z.string().regex(/^whsec_/) }).openapi(
  'WebhookSubscriptionWithSecret',
)
const many = z.array(WebhookSubscription)
const kindName = z.string().openapi({ enum: [...eventKinds], example: 'cloudDocument' })

const created = {
  schema: subscriptionDocument({ allowInsecure: false }).openapi('SubscriptionFields'),
  example: { postUrl: 'https://example.com/ledger-events', onEvents: ['ledger', 'cloudDocument'] },
  mediaTypes: ['application/json'] as const,
}
const changed = { 200: inJson('The subscription after the change', WebhookSubscription) }

const createSubscription = webhookRoute({
  method: 'post',
  operationId: 'createSubscription',
  path: '/api/v1/webhook',
  summary: 'Subscribes an address to kinds of events',
  description:
    'A company token subscribes for its folder; a firm token for folders of its firm, or for the firm. The tokens ' +
    'of one third party may create 100 subscriptions in one schema, disabled ones included, unless the operators set ' +
    'another limit. Above the limit the answer is 409 ERR-TOO-MANY-SUBSCRIPTIONS.',
  body: created,
  answers: {
    201: {
      ...inJson('The subscription, with the secret that signs its deliveries', WithSecret),
      headers: { Location: { description: 'The path of the subscription', schema: { type: 'string' } } },
    },
  },
  answer: async ({ c, services, principal, body, inSchema }) => {
    const rules = rulesOf(services)
    const document = checkBody(subscriptionDocument(rules), body)
    const folderIds = foldersFor(principal, document)
    const { schemaId, level, firmId, thirdPartyId } = principal
    const { postUrl, onEvents } = document
    await checkTarget(postUrl, rules)
    const answered = await inSchema(async (client) => {
      await checkFolders(client, principal, folderIds)
      await checkCount(client, principal, services.config.webhookSubscriptionsMax)
      const fields = { schemaId, level, firmId, thirdPartyId, postUrl, onEvents, folderIds }
      const created = await insertSubscription(client, fields)
      const signingSecret = await addSigningSecret(client, created.id, services.masterKeys)
      return { ...shown(created), signingSecret }
    })
    c.header('Location', `/api/v1/webhook/${answered.id}`)
    return answered
  },
})

const listSubscriptions = webhookRoute({
  operationId: 'listSubscriptions',
  path: '/api/v1/webhook',
  summary: 'The subscriptions of the caller',
  answers: {
    200: inJson('Subscriptions that its third party created at this level, oldest first', many),
  },
  answer: async ({ inSchema }) => (await inSchema(listOwnSubscriptions)).map(shown),
})

const getSubscription = webhookRoute({
  operationId: 'getSubscription',
  path: '/api/v1/webhook/{id}',
  summary: 'One subscription of the caller',
  answers: { 200: inJson('The subscription', WebhookSubscription) },
  answer: async ({ subscriptionId, inSchema }) => {
    const id = subscriptionId()
    return shown(await inSchema((client, caller) => findOwnSubscription(client, caller, id)))
  },
})

const receiving = {
  answers: { 200: inJson('Enabled subscriptions of the caller, oldest first', many) },
  answer: listReceiving,
} as const

const listForKind = webhookRoute({
  ...receiving,
  operationId: 'listSubscriptionsToEvent',
  path: '/api/v1/webhook/event/{name}',
  summary: 'The subscriptions of the caller that receive events of this kind',
  params: z.object({ name: kindName }),
})

const listForKindAndFolder = webhookRoute({
  ...receiving,
  operationId: 'listSubscriptionsToEventOfFolder',
  path: '/api/v1/webhook/event/{name}/{accountingFolderId}',
  summary: 'The subscriptions of the caller that receive events of this kind in this folder',
  params: z.object({
    name: kindName,
    accountingFolderId: z.string().openapi({ ...idSchema, example: '1000' }),
  }),
})

async function listReceiving({ c, principal, inSchema }: WebhookCall<unknown>) {
  const { name: given, accountingFolderId } = c.req.param() as { name?: string; accountingFolderId?: string }
  const name = wordOf(eventKinds, given)
  if (name === undefined) throw invalid('name', `must be one of ${eventKinds.join(', ')}`)
  const folderId = accountingFolderId === undefined ? undefined : readFolderId(accountingFolderId, principal)
  const receivers = await inSchema(async (client) => {
    if (folderId !== undefined) await checkFolders(client, principal, [folderId])
    return listOwnReceivers(client, principal, name, folderId)
  })
  return receivers.map(shown)
}

const merged = mergePatchDocument({ allowInsecure: false }).openapi('SubscriptionMergePatch')

const updateSubscription = webhookRoute({
  method: 'patch',
  operationId: 'updateSubscription',
  path: '/api/v1/webhook/{id}',
  summary: 'Applies a patch to a subscription of the caller, completely or not at all, and enables it',
  description:
    'Operations on /postUrl, /onEvents, /accountingFolderId and items of these arrays; or, as application/merge-patch+json or ' +
    'a JSON object, the fields to set (RFC 7396); only postUrl may be null. New kinds and folders count for ' +
    'events that happen from then on. Any successful patch, even an empty one, enables a disabled subscription, which ' +
    'goes on where it stopped; /position, set to "latest", skips what it missed. Deliveries that wait for a retry ' +
    'are sent at once; without an address nothing is posted.',
  body: {
    schema: z.union([patchDocument, merged]).openapi('SubscriptionChange'),
    schemaOf: { 'application/json-patch+json': patchDocument, 'application/merge-patch+json': merged },
    example: [{ op: 'replace', path: '/onEvents', value: ['ledger'] }],
    mediaTypes: ['application/json-patch+json', 'application/merge-patch+json', 'application/json'],
  },
  answers: changed,
  answer: (call) => {
    const { body, c } = call
    const type = c.req.header('content-type')?.toLowerCase() ?? ''
    const merges = type.includes('merge-patch') || !(type.includes('json-patch') || Array.isArray(body))
    if (!merges) {
      const patch = checkBody(patchDocument, body)
      return changeOwn(call, (document) => patched(document, patch), skipsToLatest(patch))
    }
    const given = checkBody(mergePatchDocument(rulesOf(call.services)), body)
    return changeOwn(call, (document) => ({ ...document, ...given }))
  },
})

const replaceSubscription = webhookRoute({
  method: 'put',
  operationId: 'replaceSubscription',
  path: '/api/v1/webhook/{id}',
  summary: 'Replaces a subscription of the caller, completely or not at all, and enables it',
  description:
    'The body is that of POST, with the same defaults. It has the effects of a PATCH; the secret and the numbers of ' +
    'events stay.',
  body: created,
  answers: changed,
  answer: (call) => {
    const document = checkBody(subscriptionDocument(rulesOf(call.services)), call.body)
    return changeOwn(call, () => document)
  },
})

/**
 * Changes a subscription to what `next` returns.
 *
 * The row is locked while the patch is applied, so that the second of two concurrent patches sees the result of the
 * first. It is not locked during the DNS lookup of a new address, nor while a long backlog gets its numbers: the
 * transaction then ends without a change, and everything is repeated afterwards. No operation copies into /postUrl, so
 * the repetition gives the same address.
 * @param skips whether what was not delivered yet is skipped
 */
async function changeOwn(
  { services, principal, subscriptionId, inSchema }: WebhookCall<unknown>,
  next: (document: SubscriptionDocument) => unknown,
  skips = false,
) {
  const id = subscriptionId()
  const rules = rulesOf(services)
  const vetted = new Set<string | null>([null])
  let isNumbered = false
  for (;;) {
    const outcome = await inSchema(async (client) => {
      const before = await lockOwnSubscription(client, principal, id)
      const document = checkBody(subscriptionDocument(rules), next(documentOf(before)))
      const folderIds = foldersFor(principal, document)
      const added = folderIds.filter((folderId) => !before.folderIds.includes(folderId))
      await checkFolders(client, principal, added)
      const { postUrl, onEvents } = document
      if (postUrl !== before.postUrl && !vetted.has(postUrl)) return { toVet: postUrl }
      const change = { to: { postUrl, onEvents, folderIds }, skips }
      if (!isNumbered && needsNumbers(before, change)) return 'toNumber'
      await applyChange(client, before, change)
      return { ...before, ...change.to }
    })
    if (outcome === 'toNumber') {
      await numberInParts(inSchema, id)
      isNumbered = true
    } else if ('toVet' in outcome) {
      await checkTarget(outcome.toVet, rules)
      vetted.add(outcome.toVet)
    } else return shown(outcome)
  }
}

const rotateSecret = webhookRoute({
  method: 'post',
  operationId: 'rotateSigningSecret',
  path: '/api/v1/webhook/{id}/rotate-secret',
  summary: 'Replaces the secret that signs the deliveries of a subscription',
  description:
    'The previous secret signs beside the new one for 24 hours. At most four secrets sign at once.',
  answers: { 200: inJson('The subscription, with its new secret', WithSecret) },
  answer: ({ services, subscriptionId, inSchema }) => {
    const id = subscriptionId()
    return inSchema(async (client, caller) => {
      const own = await lockOwnSubscription(client, caller, id)
      return { ...shown(own), signingSecret: await rotateSigningSecret(client, id, services.masterKeys) }
    })
  },
})

const deleteOwnSubscription = webhookRoute({
  method: 'delete',
  operationId: 'deleteSubscription',
  path: '/api/v1/webhook/{id}',
  summary: 'Deletes a subscription of the caller, and discards its pending deliveries',
  answers: { 204: { description: 'Deleted' } },
  answer: async ({ c, subscriptionId, inSchema }) => {
    const id = subscriptionId()
    await inSchema(async (client, caller) => {
      await lockOwnSubscription(client, caller, id)
      await deleteSubscription(client, id)
    })
    return c.body(null, 204)
  },
})

export const subscriptionRoutes: readonly Route[] = [
  createSubscription,
  listSubscriptions,
  getSubscription,
  listForKind,
  listForKindAndFolder,
  updateSubscription,
  replaceSubscription,
  rotateSecret,
  deleteOwnSubscription,
]

function shown({ id, postUrl, onEvents, folderIds, thirdPartyId }: Subscription) {
  return {
    id: Number(id),
    postUrl,
    onEvents,
    accountingFolderId: folderIds,
    thirdPartyId: Number(thirdPartyId),
  }
}

function rulesOf({ config }: WebhookCall<unknown>['services']): TargetRules {
  return { allowInsecure: config.webhookAllowInsecure }
}

/**
 * Reads the folder id.
 * @throws {AppError} ERR-FORBIDDEN-ACCESS, ERR-FOLDER-NOT-FOUND, as every route that concerns a folder
 */
function readFolderId(given: string, { folderId: own }: Principal): string {
  const folderId = readId(given)
  if (own !== null && folderId !== own) throw new AppError('ERR-FORBIDDEN-ACCESS')
  if (folderId === undefined) throw new AppError('ERR-FOLDER-NOT-FOUND')
  return folderId
}

/** A company token has only its own folder, which needs no check. */
async function checkFolders(client: PoolClient, principal: Principal, folderIds: string[]): Promise<void> {
  if (principal.level === 'firm' && !(await areFoldersOfFirm(client, principal, folderIds)))
    throw new AppError('ERR-FOLDER-NOT-FOUND')
}

/**
 * Makes sure that this transaction may create one more subscription.
 * @throws {AppError} ERR-TOO-MANY-SUBSCRIPTIONS
 */
async function checkCount(client: PoolClient, principal: Principal, most: number): Promise<void> {
  if ((await countCreatedByTokens(client, principal)) < most) return
  const message =
    `The tokens of a third party may create ${most} subscriptions in a schema, disabled ones included. Yours have ` +
    'reached this limit: delete one that you no longer need'
  throw new AppError('ERR-TOO-MANY-SUBSCRIPTIONS', { message })
}

async function checkTarget(postUrl: SubscriptionDocument['postUrl'], rules: TargetRules): Promise<void> {
  if (postUrl === null) return
  const wrong = await vetTarget(postUrl, rules)
  if (wrong !== undefined) throw invalid('postUrl', wrong)
}
