import type pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { latestMigration, migrate } from '../../src/db/migrations/migrate.ts'
import { forEachTest } from '../support/for-tests.ts'
import { createTenants } from '../support/ledgers/tenants.ts'
import { connect, createTestDatabase } from '../support/servers/database.ts'
import { until } from '../support/until.ts'
import { checkOutFormerCode, formerCommits, isFormerCodeKnown } from '../support/upgrade/former-code.ts'
import { makeFormerSchema } from '../support/upgrade/former-schema.ts'

const database = forEachTest(() => createTestDatabase({ template: 'template1' }))
const clients: pg.Client[] = []

beforeEach(async () => {
  const former = await checkOutFormerCode(formerCommits.rolling)
  await makeFormerSchema(database.ownerUrl, `${former.path}/src/db/migrations`)
  await former.drop()
})
afterEach(async () => {
  for (const client of clients.splice(0)) await client.end()
})

async function opened(url: string): Promise<pg.Client> {
  const client = await connect(url)
  clients.push(client)
  return client
}

test.skipIf(!isFormerCodeKnown).each([
  ['an import', `update accounts set name = 'Renamed' where id = 4`, 1],
  ['a revocation', 'update tokens set revoked_at = now()', 0],
  ['a delivery', 'update subscriptions set failing_since = now()', 0],
  ['a long look at what requests read', 'select from tokens, events, subscriptions, service_state', 0],
])('a migration waits for %s that stays open, and lets requests pass', async (_, statements, published) => {
  const staff = await createTenants(database.ownerUrl)
  await staff.client.query(
    `insert into grandlivre.third_parties (id, code, name, kind) values (5, 'ONE', 'One', 'partner');
     insert into grandlivre.accounts (schema_id, folder_id, id, number, name) values (100, 111, 4, '401000', 'Suppliers')`,
  )
  await staff.end()
  const other = await opened(database.ownerUrl)
  await other.query(`delete from events; begin; ${statements}`)

  const requests = await opened(database.serviceUrl)
  // A wait that lasts as long as the other transaction would exceed this limit.
  await requests.query(`set lock_timeout = '8s'`)
  let over = false
  const answered = (async () => {
    while (!over) await requests.query(`select * from enter(sha256('secret'), sha256('token'), 1000)`)
  })()
  const steps: string[] = []
  const migrated = migrate(database.ownerUrl, {
    onStep: (doing) => {
      steps.push(doing)
      return () => {}
    },
  })
  const waits = () => steps.filter((doing) => doing.startsWith('waiting for transactions')).length
  await Promise.race([until(() => waits() >= 2), answered])
  await other.query('commit')
  expect((await migrated).at(-1)).toBe(await latestMigration())
  over = true
  await answered
  const { rows } = await other.query(`select count(*)::int from events where name = 'ledger'`)
  expect(rows).toEqual([{ count: published }])
})
