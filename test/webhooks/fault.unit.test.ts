/** Faults of errors that no receiver of the other tests causes. */
import { expect, test } from 'vitest'
import { faultOf, TooLate } from '../../src/webhooks/dispatch/fault.ts'
import { RefusedTarget } from '../../src/webhooks/target.ts'

const failed = (code: string, more: object = {}) => Object.assign(new Error(code), { code, ...more })

test.each([
  ['dns', failed('ENOTFOUND', { syscall: 'getaddrinfo' })],
  ['dns', failed('EAI_AGAIN', { syscall: 'getaddrinfo' })],
  ['dns', failed('ENODATA', { syscall: 'queryA' })],
  ['dns', failed('ECONNREFUSED', { syscall: 'queryAaaa' })],
  ['dns', failed('ETIMEOUT', { syscall: 'queryA' })],
  ['connection-refused', failed('EHOSTUNREACH', { syscall: 'connect' })],
  ['connection-refused', new AggregateError([failed('ECONNREFUSED'), failed('ENETUNREACH')])],
  ['time-out', failed('UND_ERR_CONNECT_TIMEOUT')],
  ['time-out', failed('ETIMEDOUT', { syscall: 'connect' })],
  ['time-out', new TooLate('no response within 10 seconds')],
  ['tls', failed('CERT_HAS_EXPIRED')],
  ['tls', failed('ERR_TLS_CERT_ALTNAME_INVALID')],
  ['tls', failed('UNABLE_TO_VERIFY_LEAF_SIGNATURE')],
  ['tls', failed('ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE')],
  [
    'tls',
    Object.assign(
      new Error('Client network socket disconnected before secure TLS connection was established'),
      { code: 'ECONNRESET' },
    ),
  ],
  ['no-answer', failed('ECONNRESET', { syscall: 'read' })],
  ['no-answer', failed('UND_ERR_SOCKET')],
  ['no-answer', failed('HPE_INVALID_CONSTANT')],
  ['no-answer', new AggregateError([])],
  ['address-refused', new RefusedTarget('hooks.example.com')],
] as const)('the fault is %s for the error %s', (fault, error) => {
  expect(faultOf(error)).toBe(fault)
})
