import { expect, test } from 'vitest'
import { isOnOwnMachine } from '../../../src/http/reference/demo-credentials.ts'

const config = { host: '127.0.0.1', publicUrl: undefined as string | undefined }
const headers: Record<string, string[]> = { host: ['127.0.0.1:8080'], 'sec-fetch-site': ['same-origin'] }
/** The header Referer of the reference page at this host. */
const referer = ([host]: string[] = []) => ({ referer: [`http://${host}/docs/api/`] })

const isOwn = (
  settings: Partial<typeof config> = {},
  sent: Record<string, string[] | undefined> = {},
  remoteAddress = '127.0.0.1',
) =>
  isOnOwnMachine(
    { ...config, ...settings },
    {
      headersDistinct: {
        ...headers,
        ...referer(sent['host'] ?? headers['host']),
        ...sent,
      } as Record<string, string[]>,
      socket: { remoteAddress },
    },
  )

test.each([
  [{}, {}, undefined],
  [{ host: 'localhost' }, { host: ['localhost:8080'] }, '::1'],
  [{ host: '::1' }, { host: ['[::1]:8080'] }, '::1'],
  [{ host: '127.0.0.2' }, { host: ['LOCALHOST'] }, '::ffff:127.0.0.1'],
  [{ publicUrl: 'http://localhost:8080' }, {}, undefined],
])('a page on the machine of the service counts as local: %o, %o, from %s', (settings, sent, remote) => {
  expect(isOwn(settings, sent, remote)).toBe(true)
})

test.each([
  ['a service that others can reach', { host: '0.0.0.0' }, {}, undefined],
  ['a service that others can reach over IPv6', { host: '::' }, {}, undefined],
  ['a service with a name', { host: 'ledger.example.com' }, {}, undefined],
  ['a service with a public address', { publicUrl: 'https://ledger.example.com' }, {}, undefined],
  ['another machine', {}, {}, '192.168.1.7'],
  ['a connection that is closed already', {}, {}, ''],
  ['a name that resolves to this machine', {}, { host: ['attacker.example.com:8080'] }, undefined],
  ['a name that begins like this machine', {}, { host: ['127.0.0.1.example.com'] }, undefined],
  ['a request without Host', {}, { host: undefined }, undefined],
  ['a page of another site', {}, { 'sec-fetch-site': ['cross-site'] }, undefined],
  ['a page of another port of this machine', {}, { 'sec-fetch-site': ['same-site'] }, undefined],
  ['an address typed into the browser', {}, { 'sec-fetch-site': ['none'] }, undefined],
  ['a program that is no browser', {}, { 'sec-fetch-site': undefined }, undefined],
  ['a proxy that says so', {}, { forwarded: ['for=192.0.2.60'] }, undefined],
  ['a proxy that names the client', {}, { 'x-forwarded-for': ['192.0.2.60'] }, undefined],
  ['a proxy that names the host', {}, { 'x-forwarded-host': ['ledger.example.com'] }, undefined],
  ['a proxy that names itself', {}, { via: ['1.1 proxy'] }, undefined],
  [
    'a page behind a proxy that replaces Host',
    {},
    { referer: ['https://ledger.example.com/docs/api/'] },
    undefined,
  ],
  ['a page that does not say where it is', {}, { referer: undefined }, undefined],
  ['two values of Host', {}, { host: ['127.0.0.1:8080', 'ledger.example.com'] }, undefined],
  ['a proxy that names the address', {}, { 'x-real-ip': ['192.0.2.60'] }, undefined],
])('%s does not count as local', (_, settings, sent, remote) => {
  expect(isOwn(settings, sent, remote)).toBe(false)
})
