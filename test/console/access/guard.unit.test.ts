import { expect, test } from 'vitest'
import { csrfOf, isCsrf, isOurOrigin } from '../../../src/console/access/guard.ts'
import { safeTarget } from '../../../src/console/access/sign-in.ts'
import { isOurHost } from '../../../src/listen.ts'

test.each([
  ['localhost:9090', true],
  ['127.0.0.1:9090', true],
  ['[::1]:9090', true],
  ['console.localhost', true],
  ['192.168.1.4:9090', true],
  ['console.example.org', true],
  ['CONSOLE.example.org:443', true],
  ['Other', true],
  ['[2001:DB8::1]', true],
  // Names of other sites that lead to this machine.
  ['evil.example.com', false],
  ['127.0.0.1.evil.example.com', false],
  ['localhost.evil.example.com:9090', false],
  ['localhost@evil.example.com', false],
  ['', false],
  [undefined, false],
])('the host name %s belongs to the console: %s', (host, isOurs) => {
  expect(isOurHost(host, ['Console.example.org', 'other'])).toBe(isOurs)
})

const host = '127.0.0.1:9090'

test.each([
  ['same-origin', undefined, true],
  // A proxy sends another Host header than the browser.
  ['same-origin', 'https://console.example.org', true],
  ['same-site', `http://${host}`, false],
  ['cross-site', undefined, false],
  ['none', undefined, false],
  [undefined, `http://${host}`, true],
  [undefined, 'http://127.0.0.1:8080', false],
  [undefined, 'https://evil.example.com', false],
  [undefined, 'null', false],
  [undefined, undefined, false],
])(
  'a form with Sec-Fetch-Site %s and Origin %s comes from this console: %s',
  (secFetchSite, origin, isOurs) => {
    expect(isOurOrigin({ host, origin, 'sec-fetch-site': secFetchSite })).toBe(isOurs)
  },
)

test('the form token is valid for one session and does not reveal the id of that session', () => {
  const token = csrfOf('glv_session_a')
  expect(isCsrf(token, 'glv_session_a')).toBe(true)
  for (const given of [null, '', csrfOf('glv_session_b'), `${token}x`])
    expect(isCsrf(given, 'glv_session_a')).toBe(false)
  expect(token).not.toContain('glv_session')
})

test.each([
  ['/console/folders?after=12', '/console/folders?after=12'],
  ['/console', '/console'],
  ['//evil.example.com', '/console'],
  ['/console/../../evil', '/console'],
  ['/consolex', '/console'],
  ['https://evil.example.com/console', '/console'],
  ['/console\n/x', '/console'],
  [null, '/console'],
])('after a sign-in with the target %j the browser goes to %s', (given, target) => {
  expect(safeTarget(given)).toBe(target)
})
