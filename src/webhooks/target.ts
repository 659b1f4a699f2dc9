/**
 * Where deliveries may go: to the public internet, and never to an address inside the operator's network. Whoever
 * holds a token names the target, so the service must not become its way to a database, a neighbour or the metadata
 * of a cloud.
 *
 *   registration    vetUrl: the text; then the addresses that its name has by now
 *   connection      vetUrl cannot know what a name will mean later, so guardedAgent vets the very list of addresses
 *                   that the socket is then given: there is no second look-up that could answer differently
 *
 * Names are asked of the DNS directly and not through getaddrinfo: that one blocks one of four threads which files and
 * hashes share, for as long as a subscriber's name server likes. /etc/hosts is not read therefore, and names of the
 * machine's own neighbourhood mean nothing here.
 */
import dns, { type LookupAddress } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector } from 'undici'
import { limits } from '../config.ts'

/** Contract, section 7. */
export const urlCharactersMax = 2048

/**
 * What a pattern can say of an address where only https is taken: the scheme, and a host without a user name. `vetUrl`
 * also refuses what no pattern tells apart, such as a private address.
 */
export const secureUrlPattern = '^[Hh][Tt][Tt][Pp][Ss]://[^/?#@]+([/?#].*)?$'

const refused4 = new BlockList()
/** IANA's special-purpose registry of IPv4, all that is not for everyone to reach. */
const ranges4 = [
  '0.0.0.0/8', // this network, the unspecified address
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT; metadata of Alibaba's cloud
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // the platform of Azure, in a range that is otherwise public
  '169.254.0.0/16', // link-local; metadata of most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments; metadata of Oracle's cloud
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarking
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
]

// A list of its own: BlockList compares IPv4 addresses as ::ffff:a.b.c.d too, and ::/3 would match them all.
const refused6 = new BlockList()
/** What is not global unicast (2000::/3), and of that what is special or leads to an IPv4 address in disguise. */
const ranges6 = [
  '::/3', // unspecified, loopback, IPv4-mapped and -compatible, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), discard
  '2001::/23', // protocol assignments: Teredo, benchmarking, ORCHID
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '3fff::/20', // documentation
  '4000::/2', // not assigned; segment routing
  '8000::/1', // unique local, link-local, multicast; metadata of Amazon's cloud (fd00:ec2::254)
]

for (const [list, ranges, family] of [
  [refused4, ranges4, 'ipv4'],
  [refused6, ranges6, 'ipv6'],
] as const)
  for (const range of ranges) {
    const [network, prefix] = range.split('/')
    list.addSubnet(network!, Number(prefix), family)
  }

/** Whether no delivery may go to this address, in whatever notation; true for what is no address. */
export function isRefused(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return refused4.check(address, 'ipv4')
    case 6:
      // A zone (fe80::1%eth0) names an interface of this machine.
      return address.includes('%') || refused6.check(address, 'ipv6')
    default:
      return true
  }
}

export interface TargetRules {
  /** The setting WEBHOOK_ALLOW_INSECURE: http and private addresses, for development. */
  allowInsecure: boolean
}

/**
 * What is wrong with an address as it is written, as a sentence behind its name; undefined where nothing is. The URL
 * parser brings every notation of an IPv4 address (0x7f.1, 2130706433) into the usual one first.
 */
export function vetUrl(text: string, { allowInsecure }: TargetRules): string | undefined {
  if (text.length > urlCharactersMax) return `must have at most ${urlCharactersMax} characters`
  const url = URL.parse(text)
  // The parser drops line ends, turns backslashes and takes the first part of a path for a host that is missing; what
  // another one makes of them is anyone's guess.
  if (!url || !text.isWellFormed() || /[\s\p{Cc}\\]/u.test(text) || !/^https?:\/\/[^/]/i.test(text))
    return `must be an absolute address that begins with https://`
  if (url.protocol !== 'https:' && !allowInsecure) return 'must begin with https://'
  // `@` without a name before it is gone from the parsed address.
  if (/^\w+:\/\/[^/?#]*@/.test(text)) return 'must not hold a user name or a password'
  if (url.port === '0') return 'must not name port 0'
  const host = hostOf(url)
  if (!allowInsecure && isIP(host) !== 0 && isRefused(host)) return refusal
  return undefined
}

const refusal = 'must not lead to a private or reserved address'

/**
 * As `vetUrl`, and no address that the name has now may be refused. A name without any is let pass: its zone may be
 * yet to come, and each connection looks again.
 */
export async function vetTarget(text: string, rules: TargetRules): Promise<string | undefined> {
  const wrong = vetUrl(text, rules)
  if (wrong !== undefined || rules.allowInsecure) return wrong
  const addresses = await addressesOf(hostOf(new URL(text))).catch(() => [])
  return addresses.some(({ address }) => isRefused(address)) ? refusal : undefined
}

/** Without the brackets of an IPv6 address. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

/** A connection that was not made, because it would have led to a refused address. */
export class RefusedTarget extends Error {
  constructor(hostname: string) {
    super(`${hostname} leads to a private or reserved address, where no delivery goes`)
    this.name = 'RefusedTarget'
  }
}

/**
 * Connections for deliveries: HTTP/1.1, each to a vetted address. With `allowInsecure` to any.
 * It follows no redirect, as no undici agent does by itself.
 * @returns whose requests reject with RefusedTarget; to be closed or destroyed
 */
export function guardedAgent(
  { allowInsecure }: TargetRules,
  options: Omit<Agent.Options, 'connect'> = {},
): Agent {
  const sockets = { allowH2: false, timeout: limits.webhookConnectMs }
  if (allowInsecure) return new Agent({ ...options, connect: sockets })
  const connect = buildConnector({ ...sockets, lookup: vettedLookup })
  return new Agent({
    ...options,
    connect: (target, callback) => {
      // Node looks up no literal, so `lookup` does not see it.
      const host = target.hostname.replace(/^\[|\]$/g, '')
      if (isIP(host) !== 0 && isRefused(host)) callback(new RefusedTarget(host), null)
      else connect(target, callback)
    },
  })
}

/** In place of Node's look-up for a socket, which connects to one of exactly these addresses. */
export const vettedLookup: LookupFunction = (hostname, options, callback) => {
  addressesOf(hostname).then(
    (addresses) => {
      // One refused address is enough: which of them the socket would take is not ours to say.
      if (addresses.some(({ address }) => isRefused(address))) callback(new RefusedTarget(hostname), [])
      else if (options.all) callback(null, addresses)
      else callback(null, addresses[0]!.address, addresses[0]!.family)
    },
    (error: NodeJS.ErrnoException) => callback(error, []),
  )
}

/**
 * The addresses that a name has now, at least one; IPv4 first.
 * @throws {Error} of the DNS, with its code (ENOTFOUND, ETIMEOUT, ECANCELLED ...)
 */
async function addressesOf(hostname: string): Promise<LookupAddress[]> {
  const name = hostname.replace(/\.$/, '')
  const family = isIP(name)
  if (family !== 0) return [{ address: name, family }]
  // No name server is asked for it (RFC 6761, section 6.3).
  if (/(^|\.)localhost$/i.test(name)) return [{ address: '127.0.0.1', family: 4 }]
  // A resolver can be given a time, which the process's own one cannot; it asks the same servers.
  const resolver = new dns.promises.Resolver({ timeout: limits.webhookResolveTryMs, tries: 2 })
  resolver.setServers(dns.getServers())
  const deadline = setTimeout(() => resolver.cancel(), limits.webhookResolveMs)
  const [found4, found6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  clearTimeout(deadline)
  const addresses = [
    ...(found4.status === 'fulfilled' ? found4.value : []).map((address) => ({ address, family: 4 })),
    ...(found6.status === 'fulfilled' ? found6.value : []).map((address) => ({ address, family: 6 })),
  ]
  if (addresses.length === 0)
    throw found4.status === 'rejected' ? found4.reason : new Error(`${name} has no address`)
  return addresses
}
