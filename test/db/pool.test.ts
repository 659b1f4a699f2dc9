/** Transactions, and connections that break. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { expect, test } from 'vitest'
import { isConnectionLoss } from '../../src/db/outage.ts'
import {
  askInTenant,
  createOwnerPool,
  createPool,
  inTenant,
  inTransaction,
  pooledConnections,
  withStartupOptions,
} from '../../src/db/pool.ts'
import { AppError } from '../../src/errors.ts'
import { openSnapshot } from '../../src/exports/read/snapshot.ts'
import { forEachTest } from '../support/for-tests.ts'
import { ask, createTestDatabase } from '../support/servers/database.ts'

const database = forEachTest(createTestDatabase)
const pool = forEachTest(() => createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'test' }))

test('our options are added to those of the address, our application name replaces its own, and psql can read the result', async () => {
  const url = withStartupOptions(
    `${database.ownerUrl}&options=-c%20role%3Dgrandlivre_service&application_name=ledger`,
    '-c lock_timeout=77',
  )
  expect(url).not.toContain('+')
  const other = createPool(url, { max: 1, applicationName: 'several options' })
  const { rows } = await other.query(
    `select current_user, current_setting('lock_timeout') as timeout, current_schema() as schema,
            current_setting('application_name') as name`,
  )
  await other.end()
  expect(rows).toEqual([
    { current_user: 'grandlivre_service', timeout: '77ms', schema: 'grandlivre', name: 'several options' },
  ])
})

test('a session enables keepalives that detect a silent client within a minute', async () => {
  const other = createPool(database.serviceUrl, { max: 1, applicationName: 'keepalives' })
  const { rows } = await other.query(
    `select name, setting::int from pg_settings where name ~ '^tcp_keepalives' order by name`,
  )
  await other.end()
  const settings = Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
  const {
    tcp_keepalives_count: count,
    tcp_keepalives_idle: idle,
    tcp_keepalives_interval: interval,
  } = settings
  expect(idle).toBeGreaterThan(0)
  expect(idle + count * interval).toBeLessThanOrEqual(60)
})

test('dates are read as year-month-day, whatever the date style of the server', async () => {
  const name = new URL(database.ownerUrl).pathname.slice(1)
  await pool.query(`alter database ${name} set datestyle = 'German'`)
  const later = createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'days' })
  const { rows } = await later.query(`select date '2026-03-01'::text as day`)
  await later.end()
  expect(rows).toEqual([{ day: '2026-03-01' }])
})

test('a transaction is committed if its function succeeds, and rolled back if it fails', async () => {
  expect(await inTransaction(pool, (client) => addSchema(client, 1))).toBe(1)
  const failure = inTransaction(pool, async (client) => {
    await addSchema(client, 2)
    throw new Error('no')
  })
  await expect(failure).rejects.toThrow('no')
  await expect(inTransaction(pool, (client) => client.query('select 1 / 0'))).rejects.toThrow(
    'division by zero',
  )
  expect((await pool.query('select schema_id from schemas')).rows).toEqual([{ schema_id: '1' }])
})

test('a transaction fails if its function hides the error of a statement', async () => {
  const hiding = inTransaction(pool, async (client) => {
    await addSchema(client, 7)
    await client.query('select nothing').catch(() => {})
  })
  await expect(hiding).rejects.toThrow('continued after a statement of its transaction had failed')
})

test('a failed transaction returns its connection to the pool', async () => {
  const before = await backend()
  await expect(inTenant(pool, '1', () => Promise.reject(new AppError('ERR-NOT-FOUND')))).rejects.toThrow()
  await expect(inTenant(pool, '1', (client) => client.query('select nothing'))).rejects.toThrow()
  expect(await backend()).toBe(before)
})

test('a transaction that fails within a COPY closes its connection, and none of its changes stay', async () => {
  const before = await backend()
  const failure = inTransaction(pool, async (client) => {
    await addSchema(client, 3)
    const copy = client.query(copyFrom('copy schemas (schema_id, name) from stdin'))
    copy.on('error', () => {})
    await new Promise((resolve) => copy.write('4\tTenant\n', resolve))
    throw new Error('line 2 is wrong')
  })
  await expect(failure).rejects.toThrow('line 2 is wrong')
  expect((await pool.query('select count(*)::int as count from schemas')).rows).toEqual([{ count: 0 }])
  expect(await backend()).not.toBe(before)
})

test('a tenant that is not an id is refused', async () => {
  const tenant = `1'; drop table schemas; --`
  const refusal = 'an id consists of at most 16 digits'
  await expect(inTenant(pool, tenant, async () => {})).rejects.toThrow(refusal)
  await expect(askInTenant(pool, tenant, 'select')).rejects.toThrow(refusal)
})

test.skipIf(process.platform !== 'linux')(
  'TCP keep-alive probes a quiet connection within a minute',
  async () => {
    const client = await pool.connect()
    const { rows } = await client.query(
      `select lpad(upper(to_hex(inet_client_port())), 4, '0') as near,
              lpad(upper(to_hex(inet_server_port())), 4, '0') as far`,
    )
    client.release()
    // Columns: addresses, state (01: established), queues, and the timer (02: keep-alive) with hundredths of seconds.
    const { near, far } = rows[0]
    const established = new RegExp(`:${near} \\w+:${far} 01 \\S+ (\\w+):(\\w+)`)
    const [, timer, when] = established.exec(await readFile('/proc/net/tcp', 'utf8'))!
    expect(timer).toBe('02')
    expect(Number.parseInt(when!, 16)).toBeLessThanOrEqual(6000)
  },
)

test('an unreachable server gives ERR-UNAVAILABLE with Retry-After', async () => {
  const nowhere = createPool('postgres://a:b@127.0.0.1:1/c', { max: 1, applicationName: 'test' })
  const error = await inTenant(nowhere, '1', async () => {}).catch((error: unknown) => error)
  await nowhere.end()
  expect(error).toMatchObject({ code: 'ERR-UNAVAILABLE', status: 503, headers: { 'Retry-After': '5' } })
})

test('a server that accepts connections and stays silent counts as unreachable', async () => {
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const sockets: Socket[] = []
  silent.on('connection', (socket) => sockets.push(socket.on('error', () => {})))
  const options = {
    connectionString: `postgres://a:b@127.0.0.1:${(silent.address() as AddressInfo).port}/c`,
    connectionTimeoutMillis: 50,
  }
  const waiting = new pg.Pool({ ...options, max: 1 })
  for (const connect of [() => new pg.Client(options).connect(), () => waiting.connect()]) {
    const error = await connect().catch((thrown: unknown) => thrown)
    expect([String(error), isConnectionLoss(error)]).toEqual([expect.stringContaining('time'), true])
  }
  await waiting.end()
  for (const socket of sockets) socket.destroy()
  silent.close()
})

test('a connection lost in a transaction gives ERR-UNAVAILABLE, and the next transaction gets a new connection', async () => {
  const failure = inTransaction(pool, async (client) => {
    await terminate(await backendOf(client))
    await client.query('select 1')
  })
  await expect(failure).rejects.toMatchObject({ code: 'ERR-UNAVAILABLE' })
  expect(await inTransaction(pool, (client) => addSchema(client, 5))).toBe(1)
})

test('a single statement whose connection is cut gives ERR-UNAVAILABLE, and the next statement succeeds', async () => {
  const cut = askInTenant(pool, '1', 'select pg_terminate_backend(pg_backend_pid())')
  await expect(cut).rejects.toMatchObject({ code: 'ERR-UNAVAILABLE' })
  // The pool has one connection: a failed statement must not keep it.
  await expect(askInTenant(pool, '1', 'select nothing')).rejects.toThrow('column "nothing" does not exist')
  expect(await askInTenant(pool, '1', 'select 7 as number')).toEqual([{ number: 7 }])
})

test('a connection lost while idle or between two queries does not end the process', async () => {
  await terminate(await backend())
  const failure = inTransaction(pool, async (client) => {
    const cut = new Promise((resolve) => client.once('end', resolve))
    await terminate(await backendOf(client))
    await cut
    await client.query('select 1')
  })
  await expect(failure).rejects.toMatchObject({ code: 'ERR-UNAVAILABLE' })
  expect(await inTransaction(pool, (client) => addSchema(client, 6))).toBe(1)
})

test('a snapshot that loses one connection while it waits for the other leaves the process running', async () => {
  const small = new pg.Pool({
    ...pooledConnections(database.serviceUrl, 'service', 'test'),
    max: 1,
    connectionTimeoutMillis: 500,
  })
  const heard = new Promise<pg.PoolClient>((resolve) => small.once('acquire', resolve))
  const opening = openSnapshot(small, '1').catch((error: unknown) => error)
  const first = await heard
  const cut = new Promise((resolve) => first.once('end', resolve))
  const { processID } = first as pg.PoolClient & { processID: number }
  await terminate(processID)
  await cut
  expect(await opening).toMatchObject({ code: 'ERR-UNAVAILABLE' })
  await small.end()
})

test('a snapshot that loses a connection before its end returns both connections to the pool', async () => {
  const two = createPool(database.serviceUrl, { max: 2, applicationName: 'snapshot test' })
  const snapshot = await openSnapshot(two, '1')
  await terminate(await backendOf(snapshot.second))
  await expect(snapshot.close()).rejects.toThrow()
  await (await openSnapshot(two, '1')).close()
  await two.end()
})

async function addSchema(client: pg.PoolClient, id: number): Promise<number | null> {
  return (await client.query(`insert into schemas (schema_id, name) values ($1, 'Tenant')`, [id])).rowCount
}

function backend(): Promise<number> {
  return inTransaction(pool, backendOf)
}

async function backendOf(client: pg.PoolClient): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  return rows[0]!.pid
}

/** Returns once the backend of the connection is gone. */
const terminate = (pid: number) => ask(database.ownerUrl, 'select pg_terminate_backend($1, 10000)', [pid])
