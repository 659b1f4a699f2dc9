import { type Command, InvalidArgumentError } from 'commander'
import type { ClientBase } from 'pg'
import { findFolder } from '../auth/tokens.sql.ts'
import { checkEventPayload, eventKinds, isEventKind } from '../events/kinds.ts'
import { publish } from '../events/publish.ts'
import { eventList } from '../lists/events.ts'
import { replayEvents, replayFailedDeliveries } from '../webhooks/replay.ts'
import { readSubscription, schemaExists } from '../webhooks/staff.sql.ts'
import { checkId, checkMost } from './terminal/check-id.ts'
import { listLines } from './terminal/list-lines.ts'
import type { Terminal } from './terminal/terminal.ts'
import { asOwner, recordAct } from './with-database.ts'

export function addEventCommands(program: Command, terminal: Terminal): void {
  const event = program.command('event').description('the events that webhooks deliver')
  event
    .command('emit')
    .description('publish an event of another program')
    .requiredOption('--schema <id>', 'the tenant in which it happened', checkId)
    .option('--folder <id>', 'the folder; of the schema as a whole otherwise', checkId)
    .option('--person <id>', 'the person who caused it', checkPerson)
    .requiredOption('--name <kind>', eventKinds.join(', '))
    .requiredOption('--operation <operation>', 'CREATE, UPDATE, DELETE or VOID, as the kind knows them')
    .requiredOption('--data <json>', `as the kind says, such as '{"id":"4711"}'`)
    .action((options) => emit(terminal, options))
  event
    .command('list')
    .description('list the newest events')
    .requiredOption('--schema <id>', 'events of this tenant', checkId)
    .option('--folder <id>', 'events of one folder', checkId)
    .option('--name <kind>', 'events of one kind')
    .option('--most <number>', 'how many', '50')
    .action((options) => list(terminal, options))
  event
    .command('replay')
    .description('send the failed deliveries of a subscription again, or with --from the events of a period')
    .requiredOption('--subscription <id>', 'as webhook list shows it', checkId)
    .option('--from <moment>', 'events from then on, such as 2026-01-31T08:00:00Z')
    .option('--to <moment>', 'events before then; until now otherwise')
    .action((options) => replay(terminal, options))
}

/** @throws {InvalidArgumentError} above 2^53-1: readers of JSON could not keep it */
function checkPerson(given: string): string {
  const id = checkId(given)
  if (Number.isSafeInteger(Number(id))) return id
  throw new InvalidArgumentError('A person has a number from 1 to 2^53-1.')
}

interface Emit {
  schema: string
  folder?: string
  person?: string
  name: string
  operation: string
  data: string
}

async function emit(
  terminal: Terminal,
  { schema, folder, person, name, operation, data }: Emit,
): Promise<void> {
  const payload = checkEventPayload({ name, operation, data: parseData(data) })
  await asOwner(terminal, async (client) => {
    await checkScope(client, schema, folder)
    await publish(client, schema, [{ ...payload, folderId: folder ?? null, personId: person ?? null }])
    const details = { name, operation }
    await recordAct(client, { act: 'event emit', schemaId: schema, folderId: folder, details })
    const scope = folder === undefined ? '' : `, folder ${folder}`
    return [`Published: ${name} ${operation} in schema ${schema}${scope}.`]
  })
}

function parseData(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch (cause) {
    throw new Error(`--data is not JSON: ${(cause as Error).message}`, { cause })
  }
}

/** @throws {Error} if there is no such schema, or the folder is not in it */
async function checkScope(client: ClientBase, schemaId: string, folderId: string | undefined): Promise<void> {
  if (!(await schemaExists(client, schemaId))) throw new Error(`There is no schema ${schemaId}`)
  if (folderId === undefined) return
  const folder = await findFolder(client, folderId)
  if (folder?.schemaId !== schemaId) throw new Error(`There is no folder ${folderId} in schema ${schemaId}`)
}

interface List {
  schema: string
  folder?: string
  name?: string
  most: string
}

async function list(terminal: Terminal, { schema, folder, name, most }: List): Promise<void> {
  if (name !== undefined && !isEventKind(name))
    throw new Error(`There is no kind of event ${name}; the kinds are ${eventKinds.join(', ')}`)
  const selection = { schema, folder, name, most: checkMost(most) }
  await asOwner(terminal, async (client) => {
    await checkScope(client, schema, folder)
    return listLines(eventList, await eventList.read(client, selection))
  })
}

async function replay(
  terminal: Terminal,
  options: { subscription: string; from?: string; to?: string },
): Promise<void> {
  const { subscription: id, from, to } = options
  if (from === undefined && to !== undefined) throw new Error('--to requires --from')
  const now = Date.now()
  const span = from === undefined ? undefined : { from: moment('--from', from), to: momentOr(now, to) }
  if (span && span.from >= span.to) throw new Error('--from must be before --to, and in the past')
  await asOwner(terminal, async (client) => {
    const subscription = await readSubscription(client, id)
    const act = {
      act: 'event replay',
      ...(subscription && { partner: subscription.partnerCode }),
      schemaId: subscription?.schemaId ?? undefined,
    }
    if (span) {
      const events = await replayEvents(client, id, span, now)
      const [start, end] = [span.from, span.to].map((at) => new Date(at).toISOString())
      await recordAct(client, { ...act, details: { subscriptionId: id, events, from: start!, to: end! } })
      return [sentAgain(events, 'event', 'events')]
    }
    const deliveries = await replayFailedDeliveries(client, id, now)
    if (deliveries === 0)
      throw new Error(`Subscription ${id} has no failed delivery: see webhook deliveries ${id}`)
    await recordAct(client, { ...act, details: { subscriptionId: id, deliveries } })
    return [sentAgain(deliveries, 'failed delivery', 'failed deliveries')]
  })
}

function sentAgain(count: number, one: string, several: string): string {
  return count === 1 ? `1 ${one} is sent again.` : `${count} ${several} are sent again.`
}

function momentOr(now: number, text: string | undefined): number {
  return text === undefined ? now : moment('--to', text)
}

/** Epoch milliseconds. A time zone is required, since a moment without one depends on the machine. */
function moment(option: string, text: string): number {
  const at = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isFinite(at)) return at
  throw new Error(`${option} takes a day or a moment such as 2026-01-31T08:00:00Z, not "${text}"`)
}
