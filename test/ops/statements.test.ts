/** The setting of docs/operators/scaling.md for pg_stat_statements. */
import { appendFile, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { download } from '../support/download.ts'
import { forTests } from '../support/for-tests.ts'
import { fillLedger } from '../support/ledgers/ledger.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { connect } from '../support/servers/database.ts'
import { startOwnDatabase } from '../support/servers/own-database.ts'
import { startTestService } from '../support/service.ts'

const page = await readFile(resolve(import.meta.dirname, '../../docs/operators/scaling.md'), 'utf8')
const [, told = ''] = /^## pg_stat_statements\n.*?```sql\n(.*?)```/ms.exec(page) ?? []

const database = forTests(() =>
  startOwnDatabase((path) =>
    appendFile(join(path, 'postgresql.conf'), "\nshared_preload_libraries = 'pg_stat_statements'\n"),
  ),
)
const owner = forTests(() => connect(database.ownerUrl))
let signed: Record<string, string>

beforeAll(async () => {
  const staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('PARTNER')
  const thirdPartyId = await staff.thirdPartyId('PARTNER')
  await fillLedger(staff.client, { ...folders.first, label: 'first', thirdPartyId })
  signed = credentials(await staff.token('PARTNER', 'api', folders.first), secret)
  await staff.end()
  await owner.query('create extension pg_stat_statements schema public')
})

/** How many statements of exports the view has after 20 exports of 20 periods. */
async function statementsOfExports(): Promise<number> {
  const service = await startTestService(database)
  try {
    await owner.query('select public.pg_stat_statements_reset()')
    for (let day = 1; day <= 20; day++) {
      const period = `startDate=2024-07-01&endDate=2024-07-${String(day).padStart(2, '0')}`
      const answer = await download(`${service.url}/api/v1/mad/movements?version=1.0.0&${period}`, signed)
      expect(answer.status).toBe(200)
    }
  } finally {
    await service.stop()
  }
  const { rows } = await owner.query<{ copies: string }>(
    `select count(*) as copies from public.pg_stat_statements where query ~* '^\\s*copy'`,
  )
  return Number(rows[0]!.copies)
}

test('exports leave no rows in pg_stat_statements if that is configured', async () => {
  expect(await statementsOfExports()).toBeGreaterThanOrEqual(20)
  const { rows } = await owner.query('select current_user as login')
  await owner.query(told.replace('<login>', `"${rows[0].login}"`))
  expect(await statementsOfExports()).toBe(0)
})
