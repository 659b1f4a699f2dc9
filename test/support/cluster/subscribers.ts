/** Two subscriptions of the firm: the receiver of one records its events, the other is read by number. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Receiver, startReceiver } from '../receiver.ts'
import { repeat } from './findings.ts'
import { type Caller, expected, read } from './read.ts'

interface Numbered {
  sequence: string
  event: { webhookId: string }
}

const onEvents = ['document', 'accountingLineEntry', 'ledger', 'cloudDocument']

export async function startSubscribers(caller: Caller, secret: string) {
  const receiver = await startReceiver(secret)
  const [posted, polled] = [
    await subscribe(caller, `${receiver.url}/hook`),
    await subscribe(caller, null),
  ] as const
  let checked = 0
  /** The last number that was read of each subscription. */
  const after = new Map([
    [posted, 0],
    [polled, 0],
  ])
  const see = (subscription: string, { sequence, event }: Numbered) => {
    const text = JSON.stringify(event)
    const { findings } = caller
    findings.name(
      'event numbers that name two events',
      `number ${sequence} of subscription ${subscription}`,
      text,
    )
    findings.name('webhook ids that name two events', `webhookId ${event.webhookId} of ${subscription}`, text)
  }
  const readOn = async (subscription: string): Promise<number> => {
    const from = after.get(subscription)!
    const path = `/api/v1/webhook/${subscription}/events?after=${from}&limit=1000`
    const { headers, text } = await expected(read(caller, path), 200)
    const events = JSON.parse(text) as Numbered[]
    for (const numbered of events) see(subscription, numbered)
    const last = events.at(-1)
    // Reads on after the last number. New numbers after a failover lie beyond those of the lost server; `check` reads
    // the earlier ones.
    if (last) after.set(subscription, Number(last.sequence))
    return Number(headers['x-latest-sequence'])
  }
  const takeDelivered = () => {
    for (const { headers, events, body } of receiver.requests('/hook').slice(checked)) {
      checked += 1
      const [from] = String(headers['webhook-sequence']).split('-').map(Number)
      const id = String(headers['webhook-id'])
      caller.findings.name('webhook ids that name two events', `webhook-id ${id}`, body.toString('utf8'))
      for (const [index, event] of events.entries()) see(posted, { sequence: String(from! + index), event })
    }
  }
  return {
    loop: repeat(300, async () => void (await readOn(polled)), noteOf(caller)),
    /** Checks that every event that was delivered or can be read has its own number. */
    check: async () => {
      for (const subscription of [posted, polled]) {
        // Reads from the beginning: a number that was used again need not be the last one.
        after.set(subscription, 0)
        let latest: number | Error = Number.NaN
        for (let failed = 0; after.get(subscription) !== latest && failed < 100; ) {
          latest = await readOn(subscription).catch((error: Error) => error)
          if (!(latest instanceof Error)) continue
          failed += 1
          await delay(300)
        }
        if (after.get(subscription) !== latest)
          caller.findings.add(
            neverGot,
            `of subscription ${subscription} after ${after.get(subscription)}: ${latest}`,
          )
      }
      await arrived(receiver, after.get(posted)!, caller)
      takeDelivered()
    },
    close: () => receiver.close(),
  }
}

const neverGot = 'events that readers or receivers never got'

/** Deliveries that failed while the database was away are due again within seconds. */
async function arrived(receiver: Receiver, latest: number, { findings }: Caller): Promise<void> {
  const last = () =>
    Number(String(receiver.requests('/hook').at(-1)?.headers['webhook-sequence']).split('-').at(-1))
  for (let waited = 0; last() !== latest; waited += 1) {
    if (waited > 60)
      return findings.add(neverGot, `the last delivery is ${last()} after 30 s, the last event ${latest}`)
    await delay(500)
  }
}

async function subscribe(caller: Caller, postUrl: string | null): Promise<string> {
  const headers = { 'Content-Type': 'application/json' }
  const body = JSON.stringify({ postUrl, onEvents })
  const answer = await expected(read(caller, '/api/v1/webhook', { method: 'POST', headers, body }), 201)
  return String(JSON.parse(answer.text).id)
}

const noteOf =
  ({ findings }: Caller) =>
  (error: Error) =>
    findings.note(`subscribers: ${error.message.slice(0, 120)}`)
