import { expect, test } from 'vitest'
import { createPool } from '../../src/db/pool.ts'
import { sweepEvents } from '../../src/webhooks/retention.sql.ts'
import { forEachTest } from '../support/for-tests.ts'
import { createTenants } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'

const database = forEachTest(() => createTestDatabase())
const staff = forEachTest(() => createTenants(database.ownerUrl))
const requests = forEachTest(() =>
  createPool(database.serviceUrl, { max: 1, applicationName: 'test requests' }),
)

test('the sweep removes events and finished deliveries after thirty days; younger and unfinished ones stay', async () => {
  await staff.thirdParty('SWEPT')
  await staff.client.query(`
    set search_path = grandlivre;
    insert into events (schema_id, name, operation, scope, data, created_at)
      select case when i % 2 = 0 then 100 else 200 end, 'portfolio', 'CREATE', '{}', '{}',
        now() - case when i > 41000 then interval '29 days' else interval '31 days' end
      from generate_series(1, 41010) i;
    insert into subscriptions (id, schema_id, level, third_party_id, post_url, on_events, start_position)
      select number, 100, 'staff', id, 'https://example.com', '{document}', 0
      from third_parties cross join generate_series(1, 2) as number where code = 'SWEPT';
    update subscriptions set enabled = false, disabled_at = now(), disabled_reason = 'gone' where id = 2;
    insert into deliveries (schema_id, id, subscription_id, first_event, last_event, events, state, attempts, body,
        next_attempt_at, created_at, finished_at)
      select 100, number, subscription, 1, 1, 1, state, 1, '[]', due, now() - interval '40 days', ended
      from (values (1, 1, 'delivered', null, now() - interval '31 days'),
        (2, 1, 'failed', null, now() - interval '31 days'), (3, 1, 'failed', null, now() - interval '29 days'),
        (4, 1, 'pending', now(), null), (5, 2, 'pending', now(), null))
        as d (number, subscription, state, due, ended);
    insert into deliveries (schema_id, id, subscription_id, first_event, last_event, events, body, is_replay,
        next_attempt_at)
      values (100, 6, 2, 1, 1, 1, '[]', true, now());
    insert into delivery_attempts (schema_id, delivery_id, number, at, latency_ms)
      select 100, number, 1, now(), 1 from generate_series(1, 4) as number;
    reset search_path`)
  expect(await sweepEvents(requests, Date.now())).toEqual({ events: 41_000, deliveries: 3 })
  const kept = async (text: string) =>
    (await staff.client.query(text)).rows.map((row) => Object.values(row)[0])
  expect(await kept('select count(*)::int from grandlivre.events')).toEqual([10])
  expect(await kept('select id::int from grandlivre.deliveries order by 1')).toEqual([3, 4, 6])
  expect(await kept('select delivery_id::int from grandlivre.delivery_attempts order by 1')).toEqual([3, 4])
  expect(await sweepEvents(requests, Date.now())).toEqual({ events: 0, deliveries: 0 })
})

test('an event stays until each active subscription has collected it; disabled, suspended and disconnected ones keep no event', async () => {
  for (const code of ['SWEPT', 'GONE']) await staff.thirdParty(code)
  // Old events: one that no subscription receives, then for each subscription the first event that it has not collected.
  await staff.client.query(`
    set search_path = grandlivre;
    insert into events (schema_id, id, name, operation, scope, data, created_at)
      select schema_id, id, name, 'CREATE', '{}', '{}', now() - interval '31 days'
      from (values (100, 1, 'document'), (100, 2, 'portfolio'), (100, 3, 'exercice'), (100, 4, 'connector'),
        (100, 5, 'document'), (200, 6, 'document'), (200, 7, 'portfolio')) as e (schema_id, id, name);
    select setval('event_ids', 7);
    insert into subscriptions (id, schema_id, level, third_party_id, post_url, on_events, start_position)
      select number, schema_id, 'staff', p.id, 'https://example.com', array[s.kind], 1
      from (values (1, 100, 'SWEPT', 'portfolio'), (2, 100, 'GONE', 'exercice'), (3, null, 'SWEPT', 'connector'))
        as s (number, schema_id, code, kind) join third_parties p using (code);
    -- Suspended: it has no token.
    insert into subscriptions (id, schema_id, level, firm_id, third_party_id, post_url, on_events, start_position)
      select 4, 100, 'firm', 110, id, 'https://example.com', '{portfolio}', 1 from third_parties where code = 'SWEPT';
    update subscriptions set enabled = false, disabled_at = now(), disabled_reason = 'gone' where id = 1;
    update third_parties set disconnected_at = now(), disconnected_reason = 'gone' where code = 'GONE'`)
  const kept = async () =>
    (await staff.client.query('select id::int from events order by id')).rows.map(({ id }) => id)
  const collect = async (id: number, position: number) =>
    staff.client.query('insert into subscription_positions values (100, $1, $2)', [id, position])
  expect(await sweepEvents(requests, Date.now())).toEqual({ events: 5, deliveries: 0 })
  expect(await kept()).toEqual([4, 5])
  const numbers = await staff.client.query('select numbered::int from subscriptions where id = 4')
  expect(numbers.rows).toEqual([{ numbered: 1 }])
  await collect(3, 4)
  expect(await sweepEvents(requests, Date.now())).toEqual({ events: 2, deliveries: 0 })
  expect(await kept()).toEqual([])
})

test('the sweep removes thousands of runs of deleted events, and deliveries that wait for a disconnected third party', async () => {
  for (const code of ['SWEPT', 'GONE']) await staff.thirdParty(code)
  // Each event of the subscription had a delivery, and so a run, of its own. The first runs are of the other schema.
  await staff.client.query(`
    set search_path = grandlivre;
    insert into subscriptions (id, schema_id, level, third_party_id, post_url, on_events, start_position, numbered,
        collected)
      select number, null, 'staff', id, 'https://example.com', '{document}', 4200, 4200, 4200
      from (values (1, 'SWEPT'), (2, 'GONE')) as s (number, code) join third_parties using (code);
    update third_parties set disconnected_at = now(), disconnected_reason = 'gone' where code = 'GONE';
    insert into events (schema_id, id, name, operation, scope, data)
      select case when id <= 1100 then 200 else 100 end, id, 'document', 'CREATE', '{}', '{}'
      from unnest(array[1, 4200]) as id;
    insert into sequence_runs (schema_id, subscription_id, first_sequence, last_sequence, first_event, last_event)
      select case when i <= 1100 then 200 else 100 end, 1, i, i, i, i from generate_series(1, 4200) i;
    insert into deliveries (schema_id, subscription_id, first_event, last_event, events, body, next_attempt_at,
        created_at)
      select 100, s, 1, 1, 1, '[]', now(), now() - interval '31 days' from generate_series(1, 2) s`)
  expect(await sweepEvents(requests, Date.now())).toEqual({ events: 0, deliveries: 1 })
  const { rows: runs } = await staff.client.query(
    'select schema_id::int as schema, count(*)::int as runs from sequence_runs group by 1 order by 1',
  )
  expect(runs).toEqual([
    { schema: 100, runs: 1 },
    { schema: 200, runs: 1100 },
  ])
  const { rows: waiting } = await staff.client.query('select subscription_id::int as id from deliveries')
  expect(waiting).toEqual([{ id: 1 }])
})
