/**
 * Exports of several processes through a pooler with fewer sessions than they want. Each needs two at once, so halves
 * of exports could hold all sessions and wait for each other.
 *
 * `npm run long -- admission` has 10 processes, 1,000 folders, 64 exports at once and 40 sessions.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fillLedger } from '../support/ledgers/ledger.ts'
import { createTenants, credentials, folders, type Staff } from '../support/ledgers/tenants.ts'
import { ensurePooledLogin, withLogin } from '../support/pooled/pooled-run.ts'
import { type ServiceProcess, startProcess } from '../support/process.ts'
import { createTestDatabase, type TestDatabase } from '../support/servers/database.ts'
import { isPgBouncerInstalled, type PgBouncer, startPgBouncer } from '../support/servers/pgbouncer.ts'

const sizeOf = (name: string, fallback: number): number => Number(process.env[name] ?? fallback)
const processes = sizeOf('PROCESSES', 2)
const manyFolders = sizeOf('FOLDERS', 48)
const atOnce = sizeOf('AT_ONCE', 16)
const sessions = sizeOf('SESSIONS', 5)

let database: TestDatabase
let staff: Staff
let bouncer: PgBouncer
let services: ServiceProcess[]
let dataDir: string
let firm: Record<string, string>
let folderIds: string[]

beforeAll(async () => {
  if (!isPgBouncerInstalled) return
  database = await createTestDatabase()
  staff = await createTenants(database.ownerUrl)
  const secret = await staff.thirdParty('PARTNER')
  const { rows } = await staff.client.query('select id from grandlivre.third_parties')
  const { schemaId, folderId } = folders.first
  await fillLedger(staff.client, { schemaId, folderId, label: 'one', thirdPartyId: rows[0].id })
  firm = credentials(await staff.token('PARTNER', 'firm', folders.first), secret)
  const made = await staff.client.query<{ id: string }>(
    `insert into grandlivre.folders (schema_id, firm_id, id, name)
     select $1, $2, nextval('grandlivre.ids'), 'Folder ' || n from generate_series(2, $3::int) n returning id`,
    [schemaId, folders.first.firmId, manyFolders],
  )
  folderIds = [folderId, ...made.rows.map(({ id }) => id)]
  await ensurePooledLogin(database.ownerUrl)
  const asLogin = withLogin(database.ownerUrl)
  bouncer = await startPgBouncer([asLogin], { poolMode: 'transaction', dropsOptions: false, sessions })
  dataDir = await mkdtemp(join(tmpdir(), 'grandlivre-admission-'))
  const settings = {
    DATABASE_URL: bouncer.through(asLogin),
    DIRECT_DATABASE_URL: database.ownerUrl,
    DATA_DIR: dataDir,
    RATE_LIMIT_CONCURRENT: '1000',
  }
  services = await Promise.all(Array.from({ length: processes }, () => startProcess(settings)))
})

afterAll(async () => {
  await Promise.all(services?.map((service) => service.kill()) ?? [])
  await bouncer?.stop()
  await staff?.end()
  await database?.drop()
  if (dataDir) await rm(dataDir, { recursive: true, force: true })
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
