/**
 * Numbers of events across epochs: remaining events keep their numbers, no two events share a number, and deliveries and
 * readers show where events may have been lost. The tests change the name of the server instead of promoting another.
 * Lost events are events that were never numbered here.
 */
import { expect, test } from 'vitest'
import { createPool, whileDelivering } from '../../../src/db/pool.ts'
import { readEvents } from '../../../src/webhooks/sequence/events.ts'
import { lockSubscription, numberNext } from '../../../src/webhooks/sequence/numbering.sql.ts'
import type { Owner } from '../../../src/webhooks/subscriptions.sql.ts'
import { forTests } from '../../support/for-tests.ts'
import { documents, setWebhookStage } from '../../support/stages/webhooks.ts'
import { until } from '../../support/until.ts'

const stage = forTests(setWebhookStage)
const pool = forTests(() => createPool(stage.serviceUrl, { max: 2, applicationName: 'epochs test' }))

const epochNow = async (): Promise<number> =>
  Number((await stage.sql('select last_value as epoch from epoch'))[0].epoch)
/** Writes another name of the server into the database, as if it had replaced a primary. */
const becomeOther = () => stage.sql(`select setval('server_name', 1)`)
const add = (...names: string[]) => stage.publish(documents(names))

const leastJump = 1_000_000

interface Numbered {
  name: string
  sequence: number
  epoch: number
}

/** Numbers all remaining events, as a dispatcher does. */
async function numberRest(id: string): Promise<Numbered[]> {
  const all: Numbered[] = []
  for (;;) {
    const next = await whileDelivering(pool, async (client) => {
      await lockSubscription(client, id)
      return numberNext(client, id, 100)
    })
    if (next.length === 0) return all
    all.push(
      ...next.map(({ data, sequence, epoch }) => ({
        name: (data as { name: string }).name,
        sequence,
        epoch,
      })),
    )
  }
}

const subscribe = (path: string) => stage.subscribe(path, { level: 'firm', firmId: '110', postUrl: null })

async function pull(id: string, after: number) {
  const [{ third_party_id }] = await stage.sql('select third_party_id from subscriptions where id = $1', [id])
  const owner: Owner = {
    schemaId: '100',
    thirdPartyId: third_party_id,
    level: 'firm',
    firmId: '110',
    folderId: null,
  }
  const { json, epoch, latest } = await readEvents(pool, owner, id, after, 100)
  const events = JSON.parse(json) as { sequence: string; event: { data: { name: string } } }[]
  return { epoch, latest, events: events.map(({ sequence, event }) => `${sequence} ${event.data.name}`) }
}

test('remaining events keep their numbers, and events of the new epoch follow after a jump', async () => {
  const id = await subscribe('/left')
  await add('a', 'b')
  await numberRest(id)
  const former = await epochNow()
  // On the former server, this event had the number 3. The numbers 4 and 5 belonged to events that are lost.
  await add('left')
  await becomeOther()
  await add('new')
  const epoch = await epochNow()
  expect(epoch).not.toBe(former)
  const [left, fresh] = await numberRest(id)
  expect(left).toEqual({ name: 'left', sequence: 3, epoch: former })
  expect(fresh).toEqual({ name: 'new', sequence: fresh!.sequence, epoch })
  expect(fresh!.sequence).toBeGreaterThan(leastJump)

  expect(await pull(id, 1)).toMatchObject({ epoch: former, events: ['2 b', '3 left'] })
  // The reader after number 5 has read events that are lost.
  for (const after of [3, 5])
    expect(await pull(id, after)).toEqual({
      epoch,
      latest: fresh!.sequence,
      events: [`${fresh!.sequence} new`],
    })
  expect(await pull(id, fresh!.sequence)).toEqual({ epoch, latest: fresh!.sequence, events: [] })
})

test('a number lost in a crash is given again to the same event, even the first number of an epoch', async () => {
  const id = await subscribe('/crashed')
  await add('a')
  await numberRest(id)
  await becomeOther()
  await add('b', 'c')
  const lost: Numbered[] = []
  await whileDelivering(pool, async (client) => {
    await lockSubscription(client, id)
    for (const { data, sequence, epoch } of await numberNext(client, id, 100))
      lost.push({ name: (data as { name: string }).name, sequence, epoch })
    throw new Error('crash')
  }).catch(() => {})
  expect(lost).toHaveLength(2)
  expect(await numberRest(id)).toEqual(lost)
})

test('numbers never go back, even if a server is lost together with the jump that it made', async () => {
  const id = await subscribe('/twice')
  await add('before')
  await numberRest(id)
  let seconds = 0
  /** Promotes a server and publishes an event there. No two promotions follow in one second. */
  const addAfterPromotion = async (name: string) => {
    await becomeOther()
    await add(name)
    seconds += 1.6
    await stage.sql(
      `update events set created_at = created_at + $2 * interval '1 s' where data ->> 'name' = $1`,
      [name, seconds],
    )
  }
  for (let round = 0; round < 3; round += 1) {
    const [before] = await stage.sql('select numbered, epoch from subscriptions where id = $1', [id])
    const [at] = await stage.sql('select position from subscription_positions where subscription_id = $1', [
      id,
    ])
    await addAfterPromotion(`lost ${round}`)
    const [lost] = await numberRest(id)
    // As on a server that was not a standby of the lost one.
    await stage.sql(`delete from events where data ->> 'name' = $1`, [`lost ${round}`])
    await stage.sql('delete from sequence_runs where subscription_id = $1 and last_sequence = $2', [
      id,
      lost!.sequence,
    ])
    const { numbered, epoch } = before
    await stage.sql('update subscriptions set numbered = $2, epoch = $3 where id = $1', [id, numbered, epoch])
    await stage.sql('update subscription_positions set position = $2 where subscription_id = $1', [
      id,
      at.position,
    ])
    await addAfterPromotion(`next ${round}`)
    const [next] = await numberRest(id)
    expect(next!.sequence).toBeGreaterThan(lost!.sequence)
  }
})

test('a reader of a subscription without numbers from earlier epochs gets the first number of the new epoch', async () => {
  const [quiet, lost] = [await subscribe('/quiet'), await subscribe('/lost')]
  await becomeOther()
  await add('first')
  for (const [id, after] of [
    [quiet, 0],
    // This reader has read three events that are lost.
    [lost, 3],
  ] as const) {
    const [first] = await numberRest(id)
    expect((await pull(id, after)).events).toEqual([`${first!.sequence} first`])
  }
})

test('a reader that has read everything goes on, even if the events before the jump are no longer kept', async () => {
  const id = await subscribe('/swept')
  await add('old', 'older')
  await numberRest(id)
  await becomeOther()
  await add('new')
  const [fresh] = await numberRest(id)
  await stage.sql(`delete from events where data ->> 'name' in ('old', 'older')`)
  await stage.sql('delete from sequence_runs where subscription_id = $1 and last_sequence = 2', [id])
  for (const after of [2, 7]) expect((await pull(id, after)).events).toEqual([`${fresh!.sequence} new`])
  await expect(pull(id, 1)).rejects.toMatchObject({ code: 'ERR-EVENTS-EXPIRED' })
})

test('a reader that has seen lost numbers learns of the new epoch before any new number is given', async () => {
  const id = await subscribe('/early')
  await add('one')
  await numberRest(id)
  const former = await epochNow()
  await becomeOther()
  expect(await pull(id, 1)).toMatchObject({ epoch: former, events: [] })
  expect(await pull(id, 4)).toMatchObject({ epoch: await epochNow(), latest: 1, events: [] })
  expect(await epochNow()).not.toBe(former)
})

test('numbers jump once between epochs, whether events are numbered at once or epoch by epoch', async () => {
  const late = await stage.subscribe('/late', { postUrl: null })
  const prompt = await stage.subscribe('/prompt', { postUrl: null })
  const epochs: number[] = []
  const promptly: Numbered[] = []
  for (const name of ['one', 'two', 'three', 'four']) {
    await add(name, `${name} again`)
    epochs.push(await epochNow())
    promptly.push(...(await numberRest(prompt)))
    await becomeOther()
  }
  const names = ['one', 'two', 'three', 'four'].flatMap((name) => [name, `${name} again`])
  for (const numbers of [promptly, await numberRest(late)]) {
    expect(numbers.map(({ name }) => name)).toEqual(names)
    expect(numbers.map(({ epoch }) => epoch)).toEqual(epochs.flatMap((epoch) => [epoch, epoch]))
    const steps = numbers.slice(1).map(({ sequence }, index) => sequence - numbers[index]!.sequence)
    expect(steps.map((step) => (step > leastJump ? 'jump' : step))).toEqual([
      1,
      'jump',
      1,
      'jump',
      1,
      'jump',
      1,
    ])
  }
  // Each promotion began a new epoch.
  expect(new Set(epochs).size).toBe(4)
})

test('in a subscription for all schemas, the jump precedes every new number', async () => {
  const id = await stage.subscribe('/all', { schemaId: null, postUrl: null })
  await add('before')
  const [before] = await numberRest(id)
  await add('left')
  await becomeOther()
  await add('after')
  const epoch = await epochNow()
  const rest = await numberRest(id)
  expect(rest.map(({ name, epoch }) => [name, epoch])).toEqual([
    ['left', epoch],
    ['after', epoch],
  ])
  expect(rest[0]!.sequence - before!.sequence).toBeGreaterThan(leastJump)
  expect(rest[1]!.sequence).toBe(rest[0]!.sequence + 1)
})

test('each delivery names the epoch of its numbers, even if numbers wait on both sides of a jump', async () => {
  const id = await stage.subscribe('/posted')
  await add('x')
  const former = await epochNow()
  let dispatcher = stage.dispatch()
  const requests = () => stage.receiver.requests('/posted')
  const headers = () => requests().map(({ headers: h }) => [h['webhook-sequence'], h['webhook-epoch']])
  await until(() => requests().length === 1)
  await dispatcher.close()
  await add('y')
  await becomeOther()
  await add('z')
  const epoch = await epochNow()
  const [, z] = await numberRest(id)
  dispatcher = stage.dispatch()
  await until(() => stage.receiver.accepted('/posted').length === 3)
  await dispatcher.close()
  expect(headers()).toEqual([
    ['1-1', String(former)],
    ['2-2', String(former)],
    [`${z!.sequence}-${z!.sequence}`, String(epoch)],
  ])
  expect(stage.receiver.forged).toEqual([])
})
