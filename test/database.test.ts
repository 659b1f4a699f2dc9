import { expect, test } from 'vitest'
import { createPool, inTenant } from '../src/db/pool.ts'
import { createTestDatabase } from './support/database.ts'

test('a query that forgets its tenant sees no row', async () => {
  const database = await createTestDatabase()
  const pool = createPool(database.serviceUrl, { max: 1, applicationName: 'test' })
  const { rows } = await inTenant(pool, '1', (client) => client.query('select current_user, tenant()'))
  expect(rows).toEqual([{ current_user: 'grandlivre_service', tenant: '1' }])
  await pool.end()
  await database.drop()
})
