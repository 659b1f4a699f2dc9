/** Subscriptions, events and dispatchers on a database of the test. */
import type { TestContext } from 'vitest'
import { limits } from '../../../src/config.ts'
import { createPool, whileDelivering } from '../../../src/db/pool.ts'
import type { NewEvent } from '../../../src/events/events.sql.ts'
import { publish } from '../../../src/events/publish.ts'
import type { Log, LogEvents } from '../../../src/log.ts'
import { noTelemetry } from '../../../src/telemetry/telemetry.ts'
import { type DeliveryTiming, defaultTiming } from '../../../src/timing.ts'
import { Dispatcher } from '../../../src/webhooks/dispatch/dispatcher.ts'
import type { Search } from '../../../src/webhooks/dispatch/rounds.ts'
import { findWork } from '../../../src/webhooks/dispatch/work.sql.ts'
import { replayFailedDeliveries } from '../../../src/webhooks/replay.ts'
import {
  enableSubscription,
  insertSubscription,
  type Subscription,
} from '../../../src/webhooks/subscriptions.sql.ts'
import { guardedAgent, type TargetRules } from '../../../src/webhooks/target.ts'
import { createTenants } from '../ledgers/tenants.ts'
import { type Received, startReceiver } from '../receiver.ts'
import { createTestDatabase } from '../servers/database.ts'
import { startProxy } from '../servers/proxy.ts'
import { testMasterKey } from '../service.ts'

export interface Logged {
  event: keyof LogEvents
  // biome-ignore lint/suspicious/noExplicitAny: fields of any event
  fields: any
}

export interface RunningDispatcher {
  logged: Logged[]
  close(): Promise<void>
}

export interface DispatchOptions {
  /** Replaces the dispatcher's time and randomness. */
  clock?: Clock
  /** By default, deliveries to this machine are allowed. */
  rules?: TargetRules
  /** The times that differ from the default. */
  timing?: Partial<DeliveryTiming>
}

interface Clock {
  now: () => number
  random: () => number
}

export type WebhookStage = Awaited<ReturnType<typeof setWebhookStage>>

export async function setWebhookStage() {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('ONE')
  const otherSecret = await staff.thirdParty('TWO')
  const receiver = await startReceiver(secret, otherSecret)
  const { client: owner, sql } = staff
  /** The proxy lies between the dispatchers and their database. */
  const proxy = await startProxy(database.serviceUrl)
  const running: RunningDispatcher[] = []
  /** The third party ONE, which owns these subscriptions. */
  const thirdPartyId = await staff.thirdPartyId('ONE')
  const otherId = await staff.thirdPartyId('TWO')
  /**
   * Makes a subscription. By default ONE owns it, in tenant 100; staff made it, for the kind `document`, to the
   * receiver.
   * @returns its id
   */
  const subscribe = async (path: string, changed: Partial<Subscription> = {}) => {
    const fields = {
      schemaId: '100',
      level: 'staff',
      firmId: null,
      thirdPartyId,
      ...defaults,
      ...changed,
    } as const
    return (await insertSubscription(owner, { postUrl: receiver.url + path, ...fields })).id
  }
  return {
    ...database,
    staff,
    thirdPartyId,
    receiver,
    sql,
    subscribe,
    /** Like `subscribe`, for another third party. */
    subscribeOther: (path: string) => subscribe(path, { thirdPartyId: otherId }),
    /** Enables the subscription as a PATCH or staff would. */
    enable: async (id: string) => {
      if (!(await enableSubscription(owner, id))) throw new Error(`subscription ${id} is already enabled`)
    },
    replayFailed: async (id: string) => {
      await owner.query('begin')
      await replayFailedDeliveries(owner, id)
      await owner.query('commit')
    },
    /** Returns what a search of the dispatcher finds, and how many rows of events the search reads. */
    rowsReadBySearch: async () => {
      const pool = createPool(database.serviceUrl, { max: 1, applicationName: 'grandlivre test' })
      try {
        return await whileDelivering(pool, async (client) => {
          const read = async (): Promise<number> => {
            const { rows } = await client.query(
              `select seq_tup_read + idx_tup_fetch as rows from pg_stat_xact_user_tables where relname = 'events'`,
            )
            return Number(rows[0].rows)
          }
          // PostgreSQL plans a prepared statement afresh five times, and then may keep one plan for good.
          const search = () => findWork(client, Date.now(), everything, limits.searchSubscriptionsMax)
          for (let time = 0; time < 8; time++) await search()
          const before = await read()
          const found = (await search()).length
          return { found, rows: (await read()) - before }
        })
      } finally {
        await pool.end()
      }
    },
    proxy,
    /** Publishes the events in one transaction, in this order. */
    publish: async (events: NewEvent[], schemaId = '100') => {
      await owner.query('begin')
      await publish(owner, schemaId, events)
      await owner.query('commit')
    },
    dispatch: (options: DispatchOptions = {}) => {
      const dispatcher = startDispatcher(proxy.url, options)
      running.push(dispatcher)
      return dispatcher
    },
    close: async () => {
      await Promise.all(running.map((dispatcher) => dispatcher.close()))
      await proxy.cut()
      await receiver.close()
      await staff.end()
      await database.drop()
    },
  }
}

/** A stage that closes when the test ends. */
export async function stageOf({ onTestFinished }: TestContext): Promise<WebhookStage> {
  const stage = await setWebhookStage()
  onTestFinished(() => stage.close())
  return stage
}

const everything: Search = { schemaIds: null, rounds: new Map(), whom: 'others' }

const defaults = { onEvents: ['document'], folderIds: [] as string[] }

function startDispatcher(directUrl: string, options: DispatchOptions): RunningDispatcher {
  const { clock = { now: Date.now, random: Math.random }, rules = { allowInsecure: true }, timing } = options
  const logged: Logged[] = []
  const log: Log = (event, fields) => void logged.push({ event, fields })
  const agent = guardedAgent(rules)
  const database = createPool(directUrl, {
    max: limits.directConnectionsMax,
    applicationName: 'grandlivre test',
  })
  const dispatcher = Dispatcher.start({
    directUrl,
    database,
    masterKeys: [testMasterKey],
    agent,
    rules,
    timing: { ...defaultTiming.deliveries, ...timing },
    telemetry: noTelemetry,
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

/** An event of the kind `document` with a distinguishing name. */
export function documentEvent(name: string, folderId: string | null = null): NewEvent {
  return { name: 'document', operation: 'CREATE', data: { id: name, kind: 'DB', name }, folderId }
}

/** The names of received events of `documentEvent`. */
export function namesOf(events: { data: { name: string } }[]): string[] {
  return events.map(({ data }) => data.name)
}

/** The numbers of all events of these requests, as their headers say. */
export function sequencesOf(requests: Received[]): number[] {
  return requests.flatMap(({ headers, events }) => {
    const [first, last] = String(headers['webhook-sequence']).split('-').map(Number)
    if (last! - first! + 1 !== events.length) throw new Error(`${events.length} events, not ${first}-${last}`)
    return events.map((_, index) => first! + index)
  })
}

/** Events of the kind `document` with these names. */
export function documents(names: string[]): NewEvent[] {
  return names.map((name) => documentEvent(name))
}

/** @returns names with the numbers from `first` on */
export function numbered(count: number, first = 0): string[] {
  return Array.from({ length: count }, (_, number) => `n${first + number}`)
}

/** A clock on which no retry ever becomes due, however long the test takes. */
export function standingClock(): Clock {
  const now = Date.now()
  return { now: () => now, random: () => 0 }
}

/** The deliveries, oldest first. `sent` if the body is no longer kept. */
// biome-ignore lint/suspicious/noExplicitAny: rows
export function deliveriesOf(stage: WebhookStage, subscriptionId: string): Promise<any[]> {
  return stage.sql(
    `select id, state, attempts, events, body is null as sent from deliveries where subscription_id = $1 order by id`,
    [subscriptionId],
  )
}
