/** Numbers of erased events are skipped by readers and deliveries. */
import { beforeAll, expect, test } from 'vitest'
import { libraryOf } from '../../packages/partner/test/support/client/library.ts'
import { cli } from '../support/cli.ts'
import { forTests } from '../support/for-tests.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { setReceivingStage } from '../support/stages/receiving-stage.ts'
import { documentEvent, namesOf } from '../support/stages/webhooks.ts'
import { until } from '../support/until.ts'

const { first, sameFirm } = folders
const stage = forTests(setReceivingStage)
let firm: Record<string, string>
/** Two subscriptions: one is read by number, one is disabled before anything is sent. */
let ids: Record<'read' | 'disabled', number>

beforeAll(async () => {
  firm = (await stage.issue('firm', { ...first, folderId: null })).headers
  const subscribe = async (path: string | null) => {
    const postUrl = path && `${stage.receiver.url}/${path}`
    return (await stage.call('POST', '', { postUrl, onEvents: ['document'] }, firm)).body.id
  }
  ids = {
    read: await subscribe(null),
    disabled: await subscribe('disabled'),
  }
  await stage.sql(
    `update grandlivre.subscriptions set enabled = false, disabled_at = now(), disabled_reason = 'test' where id = $1`,
    [ids.disabled],
  )
  await publish(['kept-1'], sameFirm.folderId)
  await publish(['secret-2'], first.folderId)
  await publish(['kept-3'], sameFirm.folderId)
  await publish(['secret-4'], first.folderId)
  expect([(await read('read')).body.length, (await read('disabled')).body.length]).toEqual([4, 4])
  expect(await cli(stage.ownerUrl, 'folder', 'delete', first.folderId, '--yes')).toMatchObject({ code: 0 })
})

const publish = (names: string[], folderId: string) =>
  stage.publish(names.map((name) => documentEvent(name, folderId)))
const received = (path: string) => namesOf(stage.receiver.accepted(`/${path}`))
const read = (which: keyof typeof ids, query = '') =>
  stage.call('GET', `/${ids[which]}/events${query}`, undefined, firm)

test('a reader learns which numbers were erased, and reaches the end when no other event is left', async () => {
  const whole = await read('read')
  expect(whole.body.map(({ sequence }: { sequence: string }) => sequence)).toEqual(['1', '3'])
  expect(whole.headers.get('webhook-erased')).toBe('2, 4')
  const rest = await read('read', '?after=3')
  expect([rest.body, rest.headers.get('webhook-erased'), rest.headers.get('x-latest-sequence')]).toEqual([
    [],
    '4',
    '3',
  ])
  expect((await read('read', '?after=4')).headers.get('x-latest-sequence')).toBe('4')
  const library = libraryOf(firm, stage.service.url)
  const numbers: number[] = []
  for await (const { sequence } of library.events(ids.read, { after: 0 })) {
    numbers.push(sequence)
    if (sequence === 3) break
  }
  library.close()
  expect(numbers, 'no error, as for a loss').toEqual([1, 3])
})

test('events after a new epoch are read and delivered even if the last event before it was erased', async () => {
  // The last number before the new epoch belongs to an erased event.
  await publish(['kept-5', 'secret-6'], sameFirm.folderId)
  await read('read')
  await read('disabled')
  await stage.sql(
    `update grandlivre.events set data = 'null', scope = '{}' where data ->> 'name' = 'secret-6'`,
  )
  await stage.sql('select grandlivre.begin_epoch(true)')
  await publish(['kept-7'], sameFirm.folderId)
  const namesAfter = async (which: keyof typeof ids) =>
    namesOf((await read(which, '?after=5')).body.map(({ event }: { event: object }) => event))
  expect(await namesAfter('read')).toEqual(['kept-7'])
  expect(await namesAfter('disabled')).toEqual(['kept-7'])
  await stage.sql(
    'update grandlivre.subscriptions set enabled = true, disabled_at = null, disabled_reason = null where id = $1',
    [ids.disabled],
  )
  await publish(['kept-8'], sameFirm.folderId)
  await until(() => received('disabled').includes('kept-8'))
  expect(received('disabled')).toEqual(['kept-1', 'kept-3', 'kept-5', 'kept-7', 'kept-8'])
})
