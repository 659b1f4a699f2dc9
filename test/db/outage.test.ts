/** Which errors count as an outage of the database, and what each of them lacks. */
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { UnsafeConnection } from '../../src/db/check-connection.ts'
import { DatabaseAway, missingOf, unavailable, unavailableIfMissing } from '../../src/db/outage.ts'
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
  ['08006', 'the database'],
  ['ECONNREFUSED', 'the database'],
])('%s lacks %s, and is 503 with Retry-After', (code, missing) => {
  const error = unavailableIfMissing(failure(code))
  expect(error).toBeInstanceOf(AppError)
  expect(error).toMatchObject({ status: 503, missing, headers: { 'Retry-After': '5' } })
  // A wrapped error names the same.
  expect(missingOf(error)).toBe(missing)
})

test.each(['57014', '42P01', '23505', '40001', 'ENOENT'])(
  '%s is not an outage, and stays unchanged',
  (code) => {
    const error = failure(code)
    expect(missingOf(error)).toBeUndefined()
    expect(unavailableIfMissing(error)).toBe(error)
  },
)

test('a pool without a free connection, an unsafe connection and a lost one are distinct', () => {
  const full = new Error('timeout exceeded when trying to connect')
  expect(missingOf(full)).toBe('a free connection to the database')
  const refusal = new Error('unsupported startup parameter: options')
  for (const unsafe of [new UnsafeConnection(['because']), Object.assign(refusal, { code: '08P01' })])
    expect(missingOf(unavailable(unsafe))).toBe('a safe connection to the database')
})

test('a server with several addresses is reported with the reason of each', async () => {
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
