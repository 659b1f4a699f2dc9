import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { limits } from '../../src/config.ts'
import {
  guardedAgent,
  isRefused,
  RefusedTarget,
  vetTarget,
  vettedLookup,
  vetUrl,
} from '../../src/webhooks/target.ts'
import { type NameServer, startNameServer } from '../support/servers/name-server.ts'

/** At least one address of every range; first and last addresses where a range has unusual bounds. */
const refused = {
  loopback: ['127.0.0.1', '127.255.255.255', '::1'],
  unspecified: ['0.0.0.0', '0.1.2.3', '::'],
  private: ['10.0.0.1', '172.16.0.0', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fdff::1'],
  'link-local': ['169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'febf::1'],
  metadata: ['169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '192.0.0.192', '168.63.129.16'],
  'carrier-grade NAT': ['100.64.0.0', '100.127.255.255'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  benchmarking: ['198.18.0.1', '198.19.255.255', '2001:2::1'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff:fff::1'],
  reserved: ['240.0.0.1', '255.255.255.255', '4000::1', '5f00::1', '100::1'],
  'site-local': ['fec0::1'],
  'IPv4-mapped': ['::ffff:10.0.0.1', '::ffff:a00:1', '::ffff:8.8.8.8'],
  'IPv4-compatible': ['::10.0.0.1'],
  NAT64: ['64:ff9b::a00:1', '64:ff9b::808:808', '64:ff9b:1::1'],
  '6to4': ['2002:a00:1::1', '192.88.99.1'],
  Teredo: ['2001::1'],
  'no address': ['', 'example.com', '1.2.3', '0x7f.1'],
}
const open =
  '8.8.8.8 1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 168.63.129.15 ' +
  '223.255.255.255 2606:4700::1111 2a00::1 2001:200::1'

/** Hosts that are refused addresses in various notations: no name server is asked. */
const refusedUrls = [
  '127.0.0.1 127.1 0x7f.1 2130706433 017700000001 0177.0.0.1 127.0.0.1. %31%32%37.0.0.1 ①②⑦.0.0.1 0 0.0.0.0',
  '10.1.2.3 192.168.0.1 172.20.1.1 100.64.1.1 169.254.169.254 224.0.0.1 198.18.0.1 240.0.0.1 255.255.255.255',
  '[::] [::1] [::ffff:10.0.0.1] [fe80::1] [::ffff:7f00:1] [fd00:ec2::254] [ff02::1] [64:ff9b::a00:1] [2002:7f00:1::]',
  '[2001:db8::1]',
].flatMap((hosts) => hosts.split(' ').map((host) => `https://${host}/hook`))

describe('an address', () => {
  for (const [kind, addresses] of Object.entries(refused))
    test(`is refused if it is ${kind}`, () => {
      expect(addresses.filter((address) => !isRefused(address))).toEqual([])
    })

  test('is accepted if it is public', () => {
    expect(open.split(' ').filter(isRefused)).toEqual([])
  })
})

describe('the URL of a target', () => {
  const rules = { allowInsecure: false }

  test('is https with a name or a public address', () => {
    const good = [
      'https://example.com',
      'HTTPS://example.com:8443/a?b=c#d',
      'https://exämple.fr/é',
      'https://8.8.8.8/',
    ]
    expect(good.map((url) => vetUrl(url, rules))).toEqual(good.map(() => undefined))
  })

  test('is refused if its host is a refused address in any notation', () => {
    expect(refusedUrls.filter((url) => vetUrl(url, rules) === undefined)).toEqual([])
    for (const url of refusedUrls)
      expect(vetUrl(url, rules)).toBe('must not lead to a private or reserved address')
  })

  test('is refused with the reason', () => {
    const wrong: Record<string, string> = {
      'http://example.com/': 'must begin with https://',
      'https://user:password@example.com/': 'must not hold a user name or a password',
      'https://user@example.com/': 'must not hold a user name or a password',
      'https://@example.com/': 'must not hold a user name or a password',
      'https://example.com:0/': 'must not name port 0',
      'https://example.com:00/': 'must not name port 0',
      [`https://example.com/${'x'.repeat(2029)}`]: 'must have at most 2048 characters',
    }
    for (const [url, message] of Object.entries(wrong))
      expect([url, vetUrl(url, rules)]).toEqual([url, message])
    const noUrl = [
      '',
      'example.com',
      '/hook',
      'https:example.com',
      'https:/example.com',
      'https:///example.com',
      'ftp://example.com/',
      'file:///etc',
    ]
    const odd = [
      'https://',
      'https://:443/',
      'https://ex ample.com/',
      'https://example.com:99999/',
      'https://a\\b/',
    ]
    const hidden = [
      ' https://example.com/',
      'https://exam\nple.com/',
      'https://example.com/\u0000',
      'https://e.com/\ud800',
    ]
    for (const url of [...noUrl, ...odd, ...hidden])
      expect([url, vetUrl(url, rules)]).toEqual([
        url,
        'must be an absolute address that begins with https://',
      ])
    expect(vetUrl(`https://example.com/${'x'.repeat(2028)}`, rules)).toBeUndefined()
  })

  test('may be http or private if the operator allows it; every other rule stays', () => {
    const allowed = ['http://127.0.0.1:8080/', 'http://localhost/', 'https://10.0.0.1/', 'http://[::1]:1/']
    expect(allowed.filter((url) => vetUrl(url, { allowInsecure: true }) !== undefined)).toEqual([])
    const still = ['ftp://127.0.0.1/', 'http://a:b@127.0.0.1/', 'http://127.0.0.1:0/', 'no address']
    expect(still.filter((url) => vetUrl(url, { allowInsecure: true }) === undefined)).toEqual([])
  })
})

describe('the host name of a target', () => {
  let dns: NameServer

  beforeAll(async () => {
    dns = await startNameServer({
      'public.test': ['8.8.8.8', '2606:4700::1111'],
      'private.test': ['10.0.0.1'],
      'private6.test': ['fd00::1'],
      'mapped.test': ['::ffff:10.0.0.1'],
      'mixed.test': ['8.8.8.8', '169.254.169.254'],
      'mixed6.test': ['8.8.8.8', '::1'],
      'only6.test': ['2606:4700::1111'],
    })
  })
  afterAll(() => dns.close())

  const vet = (host: string) => vetTarget(`https://${host}/hook`, { allowInsecure: false })
  const lookUp = (name: string, all = true) =>
    new Promise((resolve, reject) =>
      vettedLookup(name, { all }, (error, found, family) =>
        error ? reject(error) : resolve(all ? found : [found, family]),
      ),
    )

  test('is refused if any of its addresses is', async () => {
    const named = 'private.test private6.test mapped.test mixed.test mixed6.test PRIVATE.test.'.split(' ')
    for (const host of [...named, 'localhost', 'LOCALHOST.', 'anything.localhost'])
      expect([host, await vet(host)]).toEqual([host, 'must not lead to a private or reserved address'])
  })

  test('is accepted if all its addresses are public, or if it has none yet', async () => {
    expect(await vet('public.test')).toBeUndefined()
    expect(await vet('only6.test')).toBeUndefined()
    expect(await vet('nowhere.test')).toBeUndefined()
  })

  test('does not hold up the caller if its name server is silent', async () => {
    const [vetted, found] = await Promise.allSettled([vet('silent.test'), lookUp('silent.test')])
    expect(vetted).toEqual({ status: 'fulfilled', value: undefined })
    expect(found).toMatchObject({ reason: { code: 'ECANCELLED' } })
  })

  test('resolves in time to connect if its name server answers for IPv4 only', async () => {
    dns.names.set('half.test', ['8.8.8.8'])
    const tooLate = delay(limits.webhookConnectMs, 'too late')
    expect(await Promise.race([lookUp('half.test'), tooLate])).toEqual([{ address: '8.8.8.8', family: 4 }])
  })

  test('is resolved once per connection, which uses exactly the addresses that were checked', async () => {
    dns.queried.length = 0
    expect(await lookUp('public.test')).toEqual([
      { address: '8.8.8.8', family: 4 },
      { address: '2606:4700::1111', family: 6 },
    ])
    expect(dns.queried).toEqual(['public.test', 'public.test'])
    expect(await lookUp('only6.test', false)).toEqual(['2606:4700::1111', 6])
    await expect(lookUp('mixed.test')).rejects.toThrow(RefusedTarget)
    await expect(lookUp('localhost')).rejects.toThrow(RefusedTarget)
    await expect(lookUp('nowhere.test')).rejects.toMatchObject({ code: 'ENOTFOUND' })
  })
})

describe('a connection', () => {
  let inside: Server
  let port: number
  let dns: NameServer
  let reached = 0
  const closing: (() => Promise<void>)[] = []

  beforeAll(async () => {
    inside = createServer((_request, response) => {
      reached += 1
      response.writeHead(302, { location: `http://127.0.0.1:${port}/moved` }).end()
    }).listen(0, '::')
    await once(inside, 'listening')
    port = (inside.address() as AddressInfo).port
    dns = await startNameServer({ 'changing.test': ['8.8.8.8'] })
  })
  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
    reached = 0
  })
  afterAll(async () => {
    await dns.close()
    inside.close()
    await once(inside, 'close')
  })

  function post(url: string, allowInsecure = false): Promise<number> {
    const agent = guardedAgent({ allowInsecure })
    closing.push(() => agent.destroy())
    return agent
      .request({ origin: new URL(url).origin, path: '/hook', method: 'POST', body: 'x' })
      .then(async ({ statusCode, body }) => {
        await body.dump()
        return statusCode
      })
  }

  test('to a refused address in the URL is not opened', async () => {
    const hosts = '127.0.0.1 0.0.0.0 [::1] [::] [::ffff:127.0.0.1] 0x7f.1 2130706433 127.1'.split(' ')
    for (const host of hosts)
      for (const scheme of ['http', 'https'])
        await expect(post(`${scheme}://${host}:${port}/`)).rejects.toThrow(RefusedTarget)
    expect(reached).toBe(0)
  })

  test('is not opened to a name that resolves to a refused address since it was registered', async () => {
    expect(await vetTarget(`https://changing.test:${port}/`, { allowInsecure: false })).toBeUndefined()
    for (const addresses of [['127.0.0.1'], ['::1'], ['::ffff:127.0.0.1'], ['8.8.8.8', '127.0.0.1']]) {
      dns.names.set('changing.test', addresses)
      for (const scheme of ['http', 'https'])
        await expect(post(`${scheme}://changing.test:${port}/`)).rejects.toThrow(RefusedTarget)
    }
    await expect(post(`http://localhost:${port}/`)).rejects.toThrow(RefusedTarget)
    expect(reached).toBe(0)
  })

  test('to a private address is opened if the operator allows it, and follows no redirect', async () => {
    expect(await post(`http://127.0.0.1:${port}/`, true)).toBe(302)
    expect(await post(`http://localhost:${port}/`, true)).toBe(302)
    expect(reached).toBe(2)
  })
})
