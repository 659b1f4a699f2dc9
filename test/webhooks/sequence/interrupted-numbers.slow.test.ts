/**
 * Numbers through kills of the service and crashes of the database: four and two, or as many as SERVICE_KILLS and
 * DATABASE_KILLS say (`npm run long -- kills`: 50 and 20). The receiver refuses at random, and a reader fills the gaps of its
 * record by number. The record must have exactly the published events, in order.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import pg from 'pg'
import { expect, type TestContext, test } from 'vitest'
import type { NewEvent } from '../../../src/events/events.sql.ts'
import { publish } from '../../../src/events/publish.ts'
import { insertSubscription } from '../../../src/webhooks/subscriptions.sql.ts'
import { createTenants, credentials, folders } from '../../support/ledgers/tenants.ts'
import { type ServiceProcess, startProcess } from '../../support/process.ts'
import { answerWith, type ReceivedEvent, type Receiver, startReceiver } from '../../support/receiver.ts'
import { startOwnDatabase } from '../../support/servers/own-database.ts'
import { request } from '../../support/service.ts'
import { documentEvent, sequencesOf } from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

const kills = {
  service: Number(process.env['SERVICE_KILLS'] ?? 4),
  database: Number(process.env['DATABASE_KILLS'] ?? 2),
}

/** What a receiver knows of one subscription. */
class ReceiverRecord {
  readonly events = new Map<number, ReceivedEvent>()
  /** Numbers in the order in which they were first delivered. */
  readonly delivered = new Set<number>()
  /** Numbers that came with two different events, and ids of deliveries that came with two different bodies. */
  readonly conflicts: unknown[] = []
  readonly #bodies = new Map<string, string>()

  add(sequence: number, event: ReceivedEvent): void {
    const known = this.events.get(sequence)
    if (known && !isDeepStrictEqual(known, event)) this.conflicts.push([sequence, known, event])
    this.events.set(sequence, event)
  }

  /** A receiver that drops a delivery whose id it knows must lose nothing. */
  addDelivery(id: string, body: string): void {
    const known = this.#bodies.get(id)
    if (known !== undefined && known !== body) this.conflicts.push([id, known, body])
    this.#bodies.set(id, body)
  }

  /** The last number before the first gap. */
  get complete(): number {
    let last = 0
    while (this.events.has(last + 1)) last += 1
    return last
  }

  get names(): string[] {
    return Array.from({ length: this.events.size }, (_, index) => this.events.get(index + 1)?.data.name)
  }
}

/** Refuses a fifth of the requests, each body at most twice: a third refusal would cost two minutes. */
function recordAt(receiver: Receiver, path: string, isRefusing: () => boolean): ReceiverRecord {
  const record = new ReceiverRecord()
  const refusals = new Map<string, number>()
  receiver.behave(path, (response, received, attempt) => {
    const body = received.body.toString('latin1')
    record.addDelivery(String(received.headers['webhook-id']), body)
    const refused = refusals.get(body) ?? 0
    if (isRefusing() && refused < 2 && Math.random() < 0.2) {
      refusals.set(body, refused + 1)
      return answerWith(500)(response, received, attempt)
    }
    for (const [index, sequence] of sequencesOf([received]).entries()) {
      record.add(sequence, received.events[index]!)
      record.delivered.add(sequence)
    }
    answerWith(204)(response, received, attempt)
  })
  return record
}

/** Publishes in one transaction, and repeats it until it is known to be committed. */
async function publishSurely(
  ownerUrl: string,
  schemaId: string,
  events: NewEvent[],
  name: string,
): Promise<void> {
  for (;;) {
    const client = new pg.Client({ connectionString: ownerUrl, options: '-c search_path=grandlivre' })
    client.on('error', () => {})
    try {
      await client.connect()
      const { rowCount } = await client.query(`select from events where data ->> 'name' = $1`, [name])
      if (rowCount === 1) return
      await client.query('begin')
      await publish(client, schemaId, events)
      await client.query('commit')
      return
    } catch {
      await delay(100)
    } finally {
      await client.end().catch(() => {})
    }
  }
}

async function stageOf({ onTestFinished }: TestContext) {
  const database = await startOwnDatabase()
  onTestFinished(() => database.drop())
  const dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-numbers-'))
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('ONE')
  const headers = credentials(await staff.token('ONE', 'firm', folders.first), secret)
  await staff.token('ONE', 'firm', folders.otherTenant)
  const receiver = await startReceiver(secret)
  onTestFinished(() => receiver.close())
  const { rows } = await staff.client.query('select id from grandlivre.third_parties')
  const fields = { thirdPartyId: rows[0].id, onEvents: ['document'], folderIds: [] }
  const subscribe = async (path: string, scope: { schemaId: string | null; firmId: string | null }) => {
    const level = scope.firmId === null ? 'staff' : 'firm'
    const postUrl = receiver.url + path
    return (await insertSubscription(staff.client, { ...fields, ...scope, level, postUrl })).id
  }
  const own = await subscribe('/own', { schemaId: '100', firmId: '110' })
  await subscribe('/all', { schemaId: null, firmId: null })
  await staff.end()
  const services: ServiceProcess[] = []
  onTestFinished(async () => {
    for (const { kill } of services) await kill()
  })
  const start = () =>
    startProcess({
      DATABASE_URL: database.ownerUrl,
      DATA_DIR: dataDir,
      WEBHOOK_ALLOW_INSECURE: 'true',
      LOG_LEVEL: 'info',
    })
  return { database, receiver, headers, own, services, start }
}

test('no event is lost, sent with another number, or out of order', {
  timeout: 60_000 + 30_000 * (kills.service + kills.database),
}, async (context) => {
  const { database, receiver, headers, own, services, start } = await stageOf(context)
  let isRefusing = true
  let isReading = true
  const record = recordAt(receiver, '/own', () => isRefusing)
  const ofAll = recordAt(receiver, '/all', () => isRefusing)
  services.push(await start(), await start())
  const reading = (async () => {
    while (isReading) {
      const url = `${services.at(-1)!.url}/api/v1/webhook/${own}/events?after=${record.complete}&limit=37&wait=1`
      const answer = await request(url, headers).catch(() => undefined)
      if (answer?.status === 200)
        for (const { sequence, event } of answer.body) record.add(Number(sequence), event)
      else await delay(50)
    }
  })()
  let commits = 0
  const publishSome = async () => {
    for (let commit = 0; commit < 5; commit += 1) {
      commits += 1
      const name = (number: number) => `${commits}.${number}`
      const events = Array.from({ length: 1 + ((commits * 7) % 40) }, (_, number) =>
        documentEvent(name(number)),
      )
      await publishSurely(database.ownerUrl, commits % 3 === 0 ? '200' : '100', events, name(0))
    }
  }
  const interruptions = [
    ...Array.from({ length: kills.service }, (_, index) => ({
      at: (index + 0.5) / kills.service,
      of: 'service',
    })),
    ...Array.from({ length: kills.database }, (_, index) => ({
      at: (index + 0.5) / kills.database,
      of: 'database',
    })),
  ].sort((one, other) => one.at - other.at)
  for (const { of } of interruptions) {
    const known = record.events.size
    const publishing = publishSome()
    await until(() => record.events.size > known)
    await delay(Math.random() * 200)
    if (of === 'database') {
      await database.stop()
      await delay(Math.random() * 200)
      await database.start()
    } else {
      await services.shift()!.kill()
      services.push(await start())
    }
    await publishing
  }
  isRefusing = false
  const client = new pg.Client({ connectionString: database.ownerUrl })
  await client.connect()
  const published = async (schemaIds: number[]): Promise<string[]> =>
    (
      await client.query(
        `select data ->> 'name' as name from grandlivre.events
         where name = 'document' and schema_id = any ($1) order by id`,
        [schemaIds],
      )
    ).rows.map(({ name }) => name)
  const [expected, everywhere] = [await published([100]), await published([100, 200])]
  await client.end()
  expect(new Set(everywhere).size).toBe(everywhere.length)
  await until(() => record.delivered.size === expected.length && ofAll.delivered.size === everywhere.length)
  isReading = false
  await reading
  expect(record.names).toEqual(expected)
  expect(ofAll.names.toSorted()).toEqual(everywhere.toSorted())
  for (const each of [record, ofAll]) {
    expect(each.conflicts).toEqual([])
    // First deliveries came in the order of the numbers.
    expect([...each.delivered]).toEqual([...each.delivered].toSorted((one, other) => one - other))
  }
  expect(receiver.forged).toEqual([])
})
