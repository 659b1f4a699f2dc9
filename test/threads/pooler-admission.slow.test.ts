import { afterAll, beforeAll, expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { fillLedger } from '../support/ledgers/ledger.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { ensurePooledLogin, withLogin } from '../support/pooled/pooled-run.ts'
import { type ServiceProcess, startProcess } from '../support/process.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { isPgBouncerInstalled, startPgBouncer } from '../support/servers/pgbouncer.ts'

const sizeOf = (name: string, fallback: number): number => Number(process.env[name] ?? fallback)
const processes = sizeOf('PROCESSES', 2)
const manyFolders = sizeOf('FOLDERS', 48)
const atOnce = sizeOf('AT_ONCE', 16)
const sessions = sizeOf('SESSIONS', 5)

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))
const bouncer = forTests(async () => {
  await ensurePooledLogin(database.ownerUrl)
  const logins = [withLogin(database.ownerUrl)]
  return startPgBouncer(logins, { poolMode: 'transaction', dropsOptions: false, sessions })
})
let services: ServiceProcess[]
let firm: Record<string, string>
let folderIds: string[]

beforeAll(async () => {
  const secret = await staff.thirdParty('PARTNER')
  const { schemaId, folderId } = folders.first
  const thirdPartyId = await staff.thirdPartyId('PARTNER')
  await fillLedger(staff.client, { schemaId, folderId, label: 'one', thirdPartyId })
  firm = credentials(await staff.token('PARTNER', 'firm', folders.first), secret)
  const made = await staff.client.query<{ id: string }>(
    `insert into grandlivre.folders (schema_id, firm_id, id, name)
     select $1, $2, nextval('grandlivre.ids'), 'Folder ' || n from generate_series(2, $3::int) n returning id`,
    [schemaId, folders.first.firmId, manyFolders],
  )
  folderIds = [folderId, ...made.rows.map(({ id }) => id)]
  const settings = {
    DATABASE_URL: bouncer.through(withLogin(database.ownerUrl)),
    DIRECT_DATABASE_URL: database.ownerUrl,
    RATE_LIMIT_CONCURRENT: '1000',
  }
  services = await Promise.all(Array.from({ length: processes }, () => startProcess(settings)))
})

afterAll(async () => {
  await Promise.all(services?.map((service) => service.kill()) ?? [])
})

const title = isPgBouncerInstalled ? '' : ' (needs PgBouncer: apt-get install pgbouncer)'
test.skipIf(!isPgBouncerInstalled)(
  `through a pooler that is too small, every export is answered, or refused with Retry-After${title}`,
  async () => {
    const waiting = folderIds.map((folderId, i) => ({ folderId, service: services[i % processes]! }))
    const answers = new Map<string, number>()
    const worker = async (): Promise<void> => {
      for (let next = waiting.pop(); next; next = waiting.pop()) {
        const url = `${next.service.url}/api/v1/mad/accounts?version=1.0.0`
        const response = await fetch(url, { headers: { ...firm, 'society-id': next.folderId } })
        const rows = (await response.json()) as unknown[]
        const isRefused = response.status === 503 && response.headers.has('retry-after')
        const answer = isRefused ? 'refused' : `${response.status} ${Array.isArray(rows)}`
        answers.set(answer, (answers.get(answer) ?? 0) + 1)
      }
    }
    const began = performance.now()
    await Promise.all(Array.from({ length: atOnce }, worker))
    const seconds = Math.round((performance.now() - began) / 100) / 10
    console.info(`${folderIds.length} exports in ${seconds} s:`, Object.fromEntries(answers))
    const { refused = 0, ...others } = Object.fromEntries(answers)
    expect(others).toEqual({ '200 true': folderIds.length - refused })
    expect(refused).toBeLessThan(folderIds.length / 4)
    // No session is left in a transaction, and none holds a lock.
    const { rows } = await staff.client.query(
      `select count(*) filter (where state like 'idle in transaction%')::int as open,
         (select count(*)::int from pg_locks l join pg_stat_activity a using (pid)
          where a.usename = 'web' and l.locktype = 'advisory' and a.datname = current_database()) as locks
       from pg_stat_activity where usename = 'web' and datname = current_database()`,
    )
    expect(rows).toEqual([{ open: 0, locks: 0 }])
    const direct = await staff.client.query(
      `select count(*)::int as n from pg_stat_activity
       where datname = current_database() and usename <> 'web' and application_name like 'grandlivre%'`,
    )
    expect(direct.rows[0].n).toBeLessThanOrEqual(8 * processes)
  },
)
