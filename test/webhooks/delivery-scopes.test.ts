/**
 * Which subscription receives which event: random subscriptions and events over all tenants, folders and
 * kinds.
 */
import { expect, test } from 'vitest'
import { Random } from '../../packages/sample/src/made-up/random.ts'
import type { NewEvent } from '../../src/events/events.sql.ts'
import { eventKinds } from '../../src/events/kinds.ts'
import { forEachTest } from '../support/for-tests.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { documentEvent, setWebhookStage } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const stage = forEachTest(setWebhookStage)

interface Drawn {
  path: string
  schemaId: string | null
  folderIds: string[]
  onEvents: string[]
}

/** What a subscription should receive, written independently of the database's predicate. */
function isFor(drawn: Drawn, schemaId: string, event: NewEvent): boolean {
  if (drawn.schemaId !== null && drawn.schemaId !== schemaId) return false
  if (!drawn.onEvents.includes(event.name)) return false
  return drawn.folderIds.length === 0 || drawn.folderIds.includes(event.folderId ?? 'none')
}

const allFolders = Object.values(folders)
const schemaIds = ['100', '200']

/** Another seed in each run. SCOPES_SEED repeats a run. */
const seed = Number(process.env['SCOPES_SEED'] ?? Date.now() % 1e6)

test(`no event of another tenant, folder or kind is delivered, and none is missing (SCOPES_SEED=${seed})`, async () => {
  const random = new Random(seed)
  const some = <Item>(items: readonly Item[], most: number): Item[] => [
    ...new Set(Array.from({ length: random.integer(1, most) }, () => random.pick(items))),
  ]
  const drawn: Drawn[] = []
  for (let number = 0; number < 40; number++) {
    const schemaId = random.pick([...schemaIds, ...schemaIds, null])
    const own = allFolders.filter((each) => each.schemaId === schemaId).map(({ folderId }) => folderId)
    const one: Drawn = {
      path: `/${number}`,
      schemaId,
      folderIds: schemaId !== null && random.chance(0.6) ? some(own, 2) : [],
      onEvents: ['visitedPage', ...some(eventKinds, 4)],
    }
    if (random.chance(0.7)) one.onEvents.push('document')
    if (random.chance(0.5)) one.onEvents.push('portfolio')
    drawn.push(one)
    await stage.subscribe(one.path, { schemaId, folderIds: one.folderIds, onEvents: one.onEvents })
  }
  const expected = new Map(drawn.map(({ path }) => [path, [] as string[]]))
  stage.dispatch()
  stage.dispatch()
  for (let batch = 0; batch < 30; batch++) {
    const schemaId = random.pick(schemaIds)
    const own = allFolders.filter((each) => each.schemaId === schemaId).map(({ folderId }) => folderId)
    const events = Array.from({ length: random.integer(1, 30) }, (_, number): NewEvent => {
      const name = `${batch}-${number}`
      const folderId = random.pick([...own, null])
      return random.chance(0.5)
        ? documentEvent(name, folderId)
        : ({ name: 'portfolio', operation: 'CREATE', data: { id: name }, folderId } as const)
    })
    await stage.publish(events, schemaId)
    for (const event of events)
      for (const one of drawn)
        if (isFor(one, schemaId, event))
          expected.get(one.path)!.push(`${schemaId} ${(event.data as { id: string }).id}`)
  }
  const received = (path: string) =>
    stage.receiver.accepted(path).map(({ scope, data }) => `${scope['schemaId']} ${data.id}`)
  await until(() => drawn.every(({ path }) => received(path).length >= expected.get(path)!.length))
  for (const { path, schemaId } of drawn) {
    const got = received(path)
    // No order is promised across schemas.
    for (const of of schemaId === null ? schemaIds : [schemaId]) {
      const inSchema = (each: string) => each.startsWith(`${of} `)
      expect(got.filter(inSchema)).toEqual(expected.get(path)!.filter(inSchema))
    }
    expect(got.length).toBe(expected.get(path)!.length)
  }
  expect(stage.receiver.forged).toEqual([])
  expect([...expected.values()].filter((names) => names.length > 0).length).toBeGreaterThan(20)
  // After two more events, no further event has arrived.
  await stage.publish([{ name: 'visitedPage', operation: 'VOID', data: { path: '/end' } }], '100')
  await stage.publish([{ name: 'visitedPage', operation: 'VOID', data: { path: '/end' } }], '200')
  const ends = ({ schemaId, folderIds }: Drawn) => (folderIds.length > 0 ? 0 : schemaId === null ? 2 : 1)
  await until(() =>
    drawn.every((one) => received(one.path).length >= expected.get(one.path)!.length + ends(one)),
  )
  for (const one of drawn) expect(received(one.path).length).toBe(expected.get(one.path)!.length + ends(one))
})
