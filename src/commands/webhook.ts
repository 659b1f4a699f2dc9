import type { ClientBase } from 'pg'
import { command } from '../../packages/terminal/src/command.ts'
import { existing } from '../acts/act.ts'
import { partnerOf } from '../acts/partners.ts'
import {
  attemptsOf,
  deleteWebhook,
  disableWebhook,
  enableWebhook,
  rotateWebhookSecret,
  signingSecret,
  subscriptionOf,
  subscriptionRecord,
} from '../acts/subscriptions.ts'
import { loadMasterKeys } from '../auth/master-key.sql.ts'
import { findFolder } from '../auth/tokens.sql.ts'
import { readConfig } from '../config.ts'
import { eventKinds } from '../events/kinds.ts'
import { attemptList, deliveryList, subscriptionFacts, subscriptionList } from '../lists/subscriptions.ts'
import { deliveryStates } from '../webhooks/dispatch/delivery.ts'
import { addSigningSecret } from '../webhooks/signing-secrets.sql.ts'
import { listDeliveries, readBacklog, type SubscriptionRecord, schemaExists } from '../webhooks/staff.sql.ts'
import { subscriptionDocument } from '../webhooks/subscription.ts'
import { insertSubscription } from '../webhooks/subscriptions.sql.ts'
import { vetTarget } from '../webhooks/target.ts'
import { actCommand, listCommand, ownerCommand, secretLines } from './staff-command.ts'
import { idKind, mostOption } from './terminal/kinds.ts'
import { factLines, listLines } from './terminal/list-lines.ts'
import type { StaffTerminal } from './terminal/terminal.ts'
import { asOwner, recordAct } from './with-database.ts'

/** Maximum number of attempts of one delivery in the list. Even a delivery with many replays has fewer. */
const attemptsMax = 1_000

const subscription = { is: idKind, help: 'of the subscription' }

export const webhookCommands = [
  command({
    name: 'webhook create',
    summary: 'subscribe a third party to all schemas, one schema, or folders of it; its tokens do not see it',
    options: {
      partner: { value: 'code', required: true, help: 'the third party; its secret signs the deliveries' },
      url: { value: 'address', required: true, help: 'the https address to which events are posted' },
      events: { value: 'kinds', required: true, help: `separated by commas: ${eventKinds.join(', ')}` },
      'all-schemas': { help: 'events of all tenants' },
      schema: { value: 'id', is: idKind, help: 'events of one tenant' },
      folder: { value: 'id', is: idKind, several: true, help: 'events of these folders of one tenant' },
    },
    run: async (terminal: StaffTerminal, { partner, url, events, ...scope }) => {
      if (Object.keys(scope).length !== 1) throw new Error('Give one of --all-schemas, --schema and --folder')
      const onEvents = await checkReceiving(terminal, url, events)
      await asOwner(terminal, async (client, config) => {
        const { id: thirdPartyId } = await partnerOf(client, partner)
        const { schemaId, folderIds } = await scopeOf(client, scope)
        const ofStaff = { schemaId, folderIds, level: 'staff', firmId: null, thirdPartyId } as const
        const { id } = await insertSubscription(client, { ...ofStaff, postUrl: url, onEvents })
        const secret = await addSigningSecret(client, id, await loadMasterKeys(config))
        const { host } = new URL(url)
        const details = { host, events: onEvents.join(',') }
        const recorded = subscriptionRecord({ id, partnerCode: partner, schemaId }, details)
        await recordAct(client, { act: 'webhook create', ...recorded })
        return [
          `Subscription ${id} of ${partner} receives events from now on.`,
          ...secretLines(signingSecret(secret)),
        ]
      })
    },
  }),
  listCommand('webhook list', 'all subscriptions', subscriptionList),
  ownerCommand({
    name: 'webhook show',
    summary: 'show one subscription',
    arguments: { id: subscription },
    lines: async (client, { id }) => {
      const found = await subscriptionOf(client, id)
      return factLines(subscriptionFacts(found, await readBacklog(client, found)))
    },
  }),
  actCommand(enableWebhook, 'go on where it stopped', 'id'),
  actCommand(disableWebhook, 'send nothing until it is enabled; its events can be read by number', 'id'),
  actCommand(
    rotateWebhookSecret,
    'a new secret for the Standard Webhooks signature; the previous one signs beside it for 24 hours',
    'id',
  ),
  actCommand(deleteWebhook, 'delete a subscription with its pending deliveries', 'id'),
  ownerCommand({
    name: 'webhook deliveries',
    summary: 'the newest deliveries to a subscription; event replay sends failed ones again',
    arguments: { id: subscription },
    options: {
      state: { value: 'state', choices: deliveryStates, help: 'in one state' },
      most: mostOption,
    },
    lines: async (client, { id, ...options }) => {
      await subscriptionOf(client, id)
      return listLines(deliveryList, await listDeliveries(client, { subscriptionId: id, ...options }))
    },
  }),
  ownerCommand({
    name: 'webhook attempts',
    summary: 'each attempt of one delivery, with the beginning of the response',
    arguments: { id: subscription, delivery: { is: idKind, help: 'as webhook deliveries shows it' } },
    lines: async (client, { id, delivery }) =>
      listLines(attemptList, await attemptsOf(client, id, delivery, attemptsMax)),
  }),
]

/** @returns the kinds of events. @throws {Error} that names the option that is wrong */
async function checkReceiving(
  { env }: StaffTerminal,
  postUrl: string,
  events: string,
): Promise<SubscriptionRecord['onEvents']> {
  const rules = { allowInsecure: readConfig(env).webhookAllowInsecure }
  const onEvents = events.split(',').map((name) => name.trim())
  const { data, error } = subscriptionDocument(rules).safeParse({ postUrl, onEvents })
  const optionOf = (path: PropertyKey[]) => (path[0] === 'postUrl' ? '--url' : '--events')
  if (error)
    throw new Error(error.issues.map(({ path, message }) => `${optionOf(path)} ${message}`).join('; '))
  const refused = await vetTarget(postUrl, rules)
  if (refused !== undefined) throw new Error(`--url ${refused}`)
  return data.onEvents
}

/** The schema and the folders of a subscription. If the schema is null, it gets the events of all schemas. */
async function scopeOf(client: ClientBase, { schema, folder }: { schema?: string; folder?: string[] }) {
  if (schema !== undefined && !(await schemaExists(client, schema)))
    throw new Error(`There is no schema ${schema}`)
  const folderIds = [...new Set(folder)]
  let schemaId = schema ?? null
  for (const id of folderIds) {
    const found = existing(await findFolder(client, id), `folder ${id}`, 'folder list')
    schemaId ??= found.schemaId
    if (found.schemaId !== schemaId)
      throw new Error('These folders are in several schemas: create a subscription for each')
  }
  return { schemaId, folderIds }
}
