import { type Command, Option } from 'commander'
import type { ClientBase } from 'pg'
import type { Details } from '../audit/audit-row.ts'
import { loadMasterKey } from '../auth/master-key.ts'
import { findThirdParty } from '../auth/third-parties.sql.ts'
import { findFolder } from '../auth/tokens.sql.ts'
import { readConfig } from '../config.ts'
import { eventKinds } from '../events/kinds.ts'
import { attemptList, deliveryList } from '../lists/deliveries.ts'
import { subscriptionFacts, subscriptionList } from '../lists/subscriptions.ts'
import { readBacklog } from '../webhooks/backlog.ts'
import { enableByStaff } from '../webhooks/change.ts'
import { type DeliveryState, deliveryStates } from '../webhooks/dispatch/delivery.ts'
import { addSigningSecret, rotateSigningSecret } from '../webhooks/signing/signing-secrets.ts'
import {
  listAttempts,
  listDeliveries,
  lockReplayed,
  readSubscription,
  type SubscriptionRecord,
  schemaExists,
} from '../webhooks/staff.sql.ts'
import { subscriptionDocument } from '../webhooks/subscription.ts'
import { deleteSubscription, disableSubscription, insertSubscription } from '../webhooks/subscriptions.sql.ts'
import { vetTarget } from '../webhooks/target.ts'
import { checkId, checkMost } from './terminal/check-id.ts'
import { checkLine } from './terminal/check-line.ts'
import { factLines, listLines } from './terminal/list-lines.ts'
import type { Terminal } from './terminal/terminal.ts'
import { asOwner, printList, recordAct } from './with-database.ts'

export function addWebhookCommands(program: Command, terminal: Terminal): void {
  const webhook = program.command('webhook').description('subscriptions to events, and their deliveries')
  webhook
    .command('create')
    .description(
      'subscribe a third party to all schemas, one schema, or folders of it; its tokens do not see it',
    )
    .requiredOption('--partner <code>', 'the third party, whose secret signs')
    .requiredOption('--url <address>', 'where events are posted, https')
    .requiredOption('--events <kinds>', `separated by commas: ${eventKinds.join(', ')}`)
    .option('--all-schemas', 'events of all tenants')
    .option('--schema <id>', 'events of one tenant', checkId)
    .option('--folder <ids...>', 'events of these folders of one tenant', (id, others: string[] = []) => [
      ...others,
      checkId(id),
    ])
    .action((options) => create(terminal, options))
  webhook
    .command('list')
    .description('all subscriptions')
    .action(() => printList(terminal, subscriptionList, {}))
  webhook
    .command('show')
    .description('show one subscription')
    .argument('<id>', 'of the subscription', checkId)
    .action((id) => show(terminal, id))
  webhook
    .command('enable')
    .description('go on where it stopped')
    .argument('<id>', 'of the subscription', checkId)
    .option('--latest', 'skip what was not delivered yet; event replay and its reader can still get it')
    .action((id, options) => enable(terminal, id, options))
  webhook
    .command('disable')
    .description('send nothing until it is enabled; its events can be read by number')
    .argument('<id>', 'of the subscription', checkId)
    .option('--reason <reason>', 'for other staff', 'Disabled by staff')
    .action((id, options) => disable(terminal, id, options))
  webhook
    .command('rotate-secret')
    .description(
      'a new secret for the Standard Webhooks signature; the previous one signs beside it for 24 hours',
    )
    .argument('<id>', 'of the subscription', checkId)
    .action((id) => rotateSecret(terminal, id))
  webhook
    .command('delete')
    .description('delete a subscription with its pending deliveries')
    .argument('<id>', 'of the subscription', checkId)
    .action((id) => remove(terminal, id))
  webhook
    .command('deliveries')
    .description('the newest deliveries to a subscription; event replay sends failed ones again')
    .argument('<id>', 'of the subscription', checkId)
    .addOption(new Option('--state <state>', 'in one state').choices(deliveryStates))
    .option('--most <number>', 'how many', '50')
    .action((id, options) => deliveries(terminal, id, options))
  webhook
    .command('attempts')
    .description('each attempt of one delivery, with the beginning of the response')
    .argument('<id>', 'of the subscription', checkId)
    .argument('<delivery>', 'as webhook deliveries shows it', checkId)
    .action((id, delivery) => attempts(terminal, id, delivery))
}

/** Attempts of one delivery that are listed: more than it has even after many replays. */
const attemptsMax = 1_000

interface Create {
  partner: string
  url: string
  events: string
  allSchemas?: true
  schema?: string
  folder?: string[]
}

async function create(terminal: Terminal, { partner, url, events, ...scope }: Create): Promise<void> {
  if (Object.keys(scope).length !== 1) throw new Error('Give one of --all-schemas, --schema and --folder')
  const rules = { allowInsecure: readConfig(terminal.env).webhookAllowInsecure }
  const onEvents = events.split(',').map((name) => name.trim())
  const checked = subscriptionDocument(rules).safeParse({ postUrl: url, onEvents })
  if (!checked.success)
    throw new Error(
      checked.error.issues.map(({ path, message }) => `${optionOf(path)} ${message}`).join('; '),
    )
  const refused = await vetTarget(url, rules)
  if (refused !== undefined) throw new Error(`--url ${refused}`)
  await asOwner(terminal, async (client, config) => {
    const thirdParty = await findThirdParty(client, partner)
    if (!thirdParty) throw new Error(`There is no third party ${partner}: see partner list`)
    const { schemaId, folderIds } = await scopeOf(client, scope)
    const { id } = await insertSubscription(client, {
      schemaId,
      folderIds,
      level: 'staff',
      firmId: null,
      thirdPartyId: thirdParty.id,
      postUrl: url,
      onEvents: checked.data.onEvents,
    })
    const secret = await addSigningSecret(client, id, await loadMasterKey(config))
    const { host } = new URL(url)
    const subscription = { id, partnerCode: partner, schemaId }
    await record(client, 'webhook create', subscription, { host, events: onEvents.join(',') })
    return [`Subscription ${id} of ${partner} receives events from now on.`, ...secretLines(secret)]
  })
}

/** Records an act on a subscription. The last statement of its transaction. */
function record(
  client: ClientBase,
  act: string,
  { id, partnerCode, schemaId }: Pick<SubscriptionRecord, 'id' | 'partnerCode' | 'schemaId'>,
  details: Details = {},
): Promise<void> {
  const subject = { partner: partnerCode, schemaId: schemaId ?? undefined }
  return recordAct(client, { act, ...subject, details: { subscriptionId: id, ...details } })
}

function optionOf(path: PropertyKey[]): string {
  return path[0] === 'postUrl' ? '--url' : '--events'
}

async function scopeOf(
  client: ClientBase,
  { schema, folder }: Pick<Create, 'schema' | 'folder'>,
): Promise<{ schemaId: string | null; folderIds: string[] }> {
  if (schema !== undefined) {
    if (!(await schemaExists(client, schema))) throw new Error(`There is no schema ${schema}`)
    return { schemaId: schema, folderIds: [] }
  }
  if (folder === undefined) return { schemaId: null, folderIds: [] }
  const schemaIds = new Set<string>()
  for (const id of folder) {
    const found = await findFolder(client, id)
    if (!found) throw new Error(`There is no folder ${id}`)
    schemaIds.add(found.schemaId)
  }
  const [schemaId = null, ...others] = schemaIds
  if (others.length > 0)
    throw new Error('These folders are in several schemas: create a subscription for each')
  return { schemaId, folderIds: [...new Set(folder)] }
}

async function show(terminal: Terminal, id: string): Promise<void> {
  await asOwner(terminal, async (client) => {
    const found = await readSubscription(client, id)
    if (!found) throw unknown(id)
    return factLines(subscriptionFacts(found, await readBacklog(client, found)))
  })
}

async function enable(terminal: Terminal, id: string, { latest }: { latest?: true }): Promise<void> {
  await asOwner(terminal, async (client) => {
    if (!(await enableByStaff(client, id, { latest: latest === true })))
      throw new Error(`There is no disabled subscription ${id}: see webhook list`)
    const enabled = await readSubscription(client, id)
    const { events } = await readBacklog(client, enabled!)
    await record(client, 'webhook enable', enabled!, { latest: latest === true })
    return [
      `Subscription ${id} goes on after number ${enabled!.collected}: ${events} ${events === 1 ? 'event waits' : 'events wait'}.`,
    ]
  })
}

async function disable(terminal: Terminal, id: string, { reason }: { reason: string }): Promise<void> {
  checkLine('--reason', reason)
  await asOwner(terminal, async (client) => {
    if (!(await disableSubscription(client, id, reason.trim(), Date.now())))
      throw new Error(`There is no enabled subscription ${id}: see webhook list`)
    const disabled = await readSubscription(client, id)
    await record(client, 'webhook disable', disabled!, { reason: reason.trim() })
    return [`Subscription ${id} is disabled.`]
  })
}

async function rotateSecret(terminal: Terminal, id: string): Promise<void> {
  await asOwner(terminal, async (client, config) => {
    if (!(await lockReplayed(client, id))) throw unknown(id)
    const secret = await rotateSigningSecret(client, id, await loadMasterKey(config))
    const subscription = await readSubscription(client, id)
    await record(client, 'webhook rotate-secret', subscription!)
    return secretLines(secret)
  })
}

function secretLines(secret: string): string[] {
  return [
    `Signing secret: ${secret}`,
    'It is shown only once; the receiver checks webhook-signature with it.',
  ]
}

async function remove(terminal: Terminal, id: string): Promise<void> {
  await asOwner(terminal, async (client) => {
    const subscription = await readSubscription(client, id)
    if (!subscription || !(await deleteSubscription(client, id))) throw unknown(id)
    await record(client, 'webhook delete', subscription)
    return [`Subscription ${id} is deleted.`]
  })
}

async function deliveries(
  terminal: Terminal,
  id: string,
  options: { state?: DeliveryState; most: string },
): Promise<void> {
  const filter = { subscriptionId: id, state: options.state, most: checkMost(options.most) }
  await asOwner(terminal, async (client) => {
    if (!(await readSubscription(client, id))) throw unknown(id)
    return listLines(deliveryList, await listDeliveries(client, filter))
  })
}

async function attempts(terminal: Terminal, id: string, delivery: string): Promise<void> {
  await asOwner(terminal, async (client) => {
    const filter = { subscriptionId: id, deliveryId: delivery, most: attemptsMax }
    const found = await listAttempts(client, filter)
    if (found.length === 0)
      throw new Error(
        `There was no attempt of a delivery ${delivery} to subscription ${id}: see webhook deliveries ${id}`,
      )
    return listLines(attemptList, found)
  })
}

function unknown(id: string): Error {
  return new Error(`There is no subscription ${id}: see webhook list`)
}
