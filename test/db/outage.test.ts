/** Which errors count as an outage of the database, and what each of them lacks. */
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { UnsafeConnection } from '../../src/db/check-connection.ts'
import {
  aFreeConnection,
  DatabaseAway,
  isAway,
  mayPass,
  missingOf,
  theDatabase,
  unavailable,
  unavailableIfMissing,
} from '../../src/db/outage.ts'
import { AppError } from '../../src/errors.ts'

function failure(code: string): Error {
  return Object.assign(new Error('as PostgreSQL or Node says it'), { code })
}

test.each([
  ['53100', 'disk space of the database'],
  ['53200', 'resources of the database'],
  ['53300', 'a free connection to the database'],
  ['53400', 'resources of the database'],
  ['57P01', 'the database'],
  ['57P02', 'the database'],
  ['57P03', 'the database'],
  ['57P04', 'the database'],
  ['57P05', 'the database'],
  ['25006', 'a writable database'],
  ['55000', 'a writable database'],
  ['08006', 'the database'],
  // A pooler passes these on when the server refuses its login or no longer has the database.
  ['28P01', 'the database'],
  ['3D000', 'the database'],
  ['ECONNREFUSED', 'the database'],
])('the error %s means that %s is missing: 503 with Retry-After', (code, missing) => {
  const error = unavailableIfMissing(failure(code))
  expect(error).toBeInstanceOf(AppError)
  expect(error).toMatchObject({ status: 503, missing, headers: { 'Retry-After': '5' } })
  // A wrapped error names the same missing dependency.
  expect(missingOf(error)).toBe(missing)
})

test.each(['57014', '42P01', '23505', '40001', 'ENOENT'])(
  '%s is not an outage, and the error stays unchanged',
  (code) => {
    const error = failure(code)
    expect(missingOf(error)).toBeUndefined()
    expect(unavailableIfMissing(error)).toBe(error)
  },
)

test('isAway is true for errors of a lost or promoted server, also as transactions report them, and for no other error', () => {
  for (const code of ['08006', '25006', '53300', '55000', '57P01', '57P03', 'ECONNRESET']) {
    expect([code, isAway(failure(code)), isAway(unavailable(failure(code)))]).toEqual([code, true, true])
  }
  const others = [failure('42P01'), failure('57014'), new AppError('ERR-FOLDER-NOT-FOUND'), 'no error']
  expect(others.filter(isAway)).toEqual([])
})

test.each([
  ['40001', true],
  ['53100', true],
  ['57014', true],
  ['58030', true],
  ['22023', false],
  ['ENOENT', undefined],
])('the statement of %s may succeed later: %s', (code, passes) => {
  expect(mayPass(failure(code))).toBe(passes)
})

test('the log explains the error of a read-only server', () => {
  const { cause } = unavailable(failure('25006'))
  expect((cause as Error).message).toMatch(
    /^as PostgreSQL or Node says it\. The server takes no changes: it is a standby/,
  )
})

test('a pool without a free connection and an unsafe connection are reported as such, not as a lost database', () => {
  const full = new Error('timeout exceeded when trying to connect')
  expect(missingOf(full)).toBe('a free connection to the database')
  const refusal = new Error('unsupported startup parameter: options')
  for (const unsafe of [new UnsafeConnection(['because']), Object.assign(refusal, { code: '08P01' })])
    expect(missingOf(unavailable(unsafe))).toBe('a safe connection to the database')
})

test.each([
  ['no such database: books', '[databases]', theDatabase],
  ['no such user: web', 'auth_file', theDatabase],
  ['password authentication failed', 'auth_file', theDatabase],
  ['no more connections allowed (max_client_conn)', 'max_client_conn', aFreeConnection],
  ['client connections exceeded (max_db_client_connections)', 'max_client_conn', aFreeConnection],
  ['query_wait_timeout', 'default_pool_size', aFreeConnection],
  ['server login has been failing, cached error: connect failed (server_login_retry)', 'runs', theDatabase],
])('the log says how to fix "%s" of a pooler, and the answer does not', (words, remedy, missing) => {
  const error = unavailable(Object.assign(new Error(words), { code: '08P01' }))
  expect([error.status, error.missing, error.message.includes(words)]).toEqual([503, missing, false])
  const { message } = error.cause as Error
  expect(message.startsWith(`${words}. `)).toBe(true)
  expect(message.slice(words.length)).toContain(remedy)
})

test('a server with several addresses is reported with the error of each address', async () => {
  const addresses = ['127.0.0.1', '::1'].map((address) => ({ address, family: address === '::1' ? 6 : 4 }))
  const { promise, resolve } = Promise.withResolvers<Error>()
  connect({ host: 'two.example', port: 1, lookup: (_, __, done) => done(null, addresses) }).on(
    'error',
    resolve,
  )
  const error = await promise
  expect(missingOf(error)).toBe('the database')
  expect(new DatabaseAway('DATABASE_URL', error).message).toMatch(
    /^The server of DATABASE_URL refuses the connection: connect E\w+ 127\.0\.0\.1:1.*; connect E\w+ ::1:1/,
  )
})
