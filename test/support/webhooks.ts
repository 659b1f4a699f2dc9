/** Subscriptions, events and dispatchers on a database of the test. */
import pg from 'pg'
import { limits } from '../../src/config.ts'
import { createPool } from '../../src/db/pool.ts'
import type { NewEvent } from '../../src/events/events.sql.ts'
import { publish } from '../../src/events/publish.ts'
import type { Log, LogEvents } from '../../src/log.ts'
import { Dispatcher } from '../../src/webhooks/dispatcher.ts'
import { insertSubscription, type Subscription } from '../../src/webhooks/subscriptions.sql.ts'
import { guardedAgent } from '../../src/webhooks/target.ts'
import { createTestDatabase } from './database.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import { testMasterKey } from './service.ts'
import { createTenants, type Staff } from './tenants.ts'

export interface Logged {
  event: keyof LogEvents
  // biome-ignore lint/suspicious/noExplicitAny: fields of any event
  fields: any
}

export interface RunningDispatcher {
  logged: Logged[]
  close(): Promise<void>
}

export interface WebhookStage {
  ownerUrl: string
  serviceUrl: string
  staff: Staff
  /** Of the third party ONE, whose subscriptions these are. */
  thirdPartyId: string
  receiver: Receiver
  /** By default of ONE in tenant 100, made by staff, for the kind `document`, to the receiver. @returns its id */
  subscribe(path: string, changed?: Partial<Subscription>): Promise<string>
  /** In one transaction, in this order. */
  publish(events: NewEvent[], schemaId?: string): Promise<void>
  // biome-ignore lint/suspicious/noExplicitAny: rows of any shape
  sql(text: string, values?: unknown[]): Promise<any[]>
  /** @param clock replaces the time and chance of the dispatcher */
  dispatch(clock?: { now: () => number; random: () => number }): RunningDispatcher
  close(): Promise<void>
}

export async function setWebhookStage(): Promise<WebhookStage> {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('ONE')
  const receiver = await startReceiver(secret)
  const owner = new pg.Client({ connectionString: database.ownerUrl, options: '-c search_path=grandlivre' })
  owner.on('error', () => {})
  await owner.connect()
  const running: RunningDispatcher[] = []
  const sql = async (text: string, values: unknown[] = []) => (await owner.query(text, values)).rows
  const [{ id: thirdPartyId }] = (await sql('select id from third_parties')) as [{ id: string }]
  return {
    ...database,
    staff,
    thirdPartyId,
    receiver,
    sql,
    subscribe: async (path, changed = {}) => {
      const made = {
        schemaId: '100',
        level: 'staff',
        firmId: null,
        thirdPartyId,
        ...defaults,
        ...changed,
      } as const
      return (await insertSubscription(owner, { postUrl: receiver.url + path, ...made })).id
    },
    publish: async (events, schemaId = '100') => {
      await owner.query('begin')
      await publish(owner, schemaId, events)
      await owner.query('commit')
    },
    dispatch: (clock = { now: Date.now, random: Math.random }) => {
      const dispatcher = startDispatcher(database.serviceUrl, clock)
      running.push(dispatcher)
      return dispatcher
    },
    close: async () => {
      await Promise.all(running.map((dispatcher) => dispatcher.close()))
      await receiver.close()
      await owner.end()
      await staff.end()
      await database.drop()
    },
  }
}

const defaults = { onEvents: ['document'], folderIds: [] as string[] }

function startDispatcher(
  serviceUrl: string,
  clock: { now: () => number; random: () => number },
): RunningDispatcher {
  const logged: Logged[] = []
  const log: Log = (event, fields) => void logged.push({ event, fields })
  const rules = { allowInsecure: true }
  const agent = guardedAgent(rules)
  const database = createPool(serviceUrl, {
    max: limits.deliveryConnectionsMax,
    applicationName: 'grandlivre test',
  })
  const dispatcher = Dispatcher.start({
    serviceUrl,
    database,
    masterKey: testMasterKey,
    agent,
    rules,
    log,
    ...clock,
  })
  let closed: Promise<void> | undefined
  const close = async () => {
    await dispatcher.close()
    await agent.destroy()
    await database.end()
  }
  return {
    logged,
    close: () => {
      closed ??= close()
      return closed
    },
  }
}

/** An event of the kind `document`, by a name that tells it from others. */
export function documentEvent(name: string, folderId: string | null = null): NewEvent {
  return { name: 'document', operation: 'CREATE', data: { id: name, kind: 'DB', name }, folderId }
}

/** The names of such events, as they were received. */
export function namesOf(events: { data: { name: string } }[]): string[] {
  return events.map(({ data }) => data.name)
}
