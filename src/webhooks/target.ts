/**
 * Restricts deliveries to the public internet, never to an address inside the operator's network. Anyone with a token
 * chooses the target, so the service must not give access to a database, a neighbour or a cloud's metadata server.
 *
 *   registration    vetUrl checks the text; vetTarget then checks the addresses that its name has now
 *   connection      a name may resolve differently later, so guardedAgent vets the very list of addresses that the
 *                   socket gets: there is no second lookup that could answer differently
 *
 * Only the check at connection protects. The one at registration reports a mistake early.
 *
 * Names are resolved by DNS queries, not by getaddrinfo: a slow name server would hold one of the four threads that
 * files and hashes share. So /etc/hosts is not read, and names of the local network do not resolve.
 */
import dns, { type LookupAddress } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector } from 'undici'
import { limits } from '../config.ts'

/** Most characters of an address (docs/spec/webhooks.md#targets). */
export const urlCharactersMax = 2048

/**
 * What a pattern can check when only https is allowed: the scheme, and that a host follows without a user name.
 * `vetUrl` also refuses what no pattern can distinguish, such as a private address.
 */
export const secureUrlPattern = '^[Hh][Tt][Tt][Pp][Ss]://[^/?#@]+([/?#].*)?$'

const refused4 = new BlockList()
/** IANA's special-purpose registry of IPv4: all ranges that are not globally reachable. */
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

// A separate list: BlockList also compares IPv4 addresses as ::ffff:a.b.c.d, and ::/3 would match them all.
const refused6 = new BlockList()
/**
 * Everything outside global unicast (2000::/3); and within it, the special ranges and the ranges whose addresses lead
 * to an embedded IPv4 address.
 */
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

/** Whether deliveries to this address are forbidden, whatever its notation; true for text that is not an address. */
export function isRefused(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return refused4.check(address, 'ipv4')
  // A zone (fe80::1%eth0) names an interface of this machine.
  return family !== 6 || address.includes('%') || refused6.check(address, 'ipv6')
}

export interface TargetRules {
  /** The setting WEBHOOK_ALLOW_INSECURE: allows http and private addresses, for development. */
  allowInsecure: boolean
}

/**
 * Returns what is wrong with a URL, as a phrase to follow the name of its field, or undefined if it is allowed. The URL
 * parser first normalizes every notation of an IPv4 address (0x7f.1, 2130706433).
 */
export function vetUrl(text: string, { allowInsecure }: TargetRules): string | undefined {
  if (text.length > urlCharactersMax) return `must have at most ${urlCharactersMax} characters`
  const url = URL.parse(text)
  // The parser drops line breaks, converts backslashes, and takes the first path segment for a missing host; other
  // parsers may read such text differently.
  if (!url || !text.isWellFormed() || /[\s\p{Cc}\\]/u.test(text) || !/^https?:\/\/[^/]/i.test(text))
    return `must be an absolute address that begins with https://`
  if (url.protocol !== 'https:' && !allowInsecure) return 'must begin with https://'
  // The parsed address no longer shows an `@` with an empty user name.
  if (/^\w+:\/\/[^/?#]*@/.test(text)) return 'must not hold a user name or a password'
  if (url.port === '0') return 'must not name port 0'
  const host = hostOf(url)
  if (!allowInsecure && isIP(host) !== 0 && isRefused(host)) return refusal
  return undefined
}

const refusal = 'must not lead to a private or reserved address'

/**
 * Checks the URL as `vetUrl` does, and also refuses a name that has a forbidden address now. A name without addresses
 * passes: its zone may not exist yet, and every connection checks again.
 */
export async function vetTarget(text: string, rules: TargetRules): Promise<string | undefined> {
  const wrong = vetUrl(text, rules)
  if (wrong !== undefined || rules.allowInsecure) return wrong
  const addresses = await addressesOf(hostOf(new URL(text))).catch(() => [])
  return addresses.some(({ address }) => isRefused(address)) ? refusal : undefined
}

/** Returns the host, without the brackets of an IPv6 address. */
function hostOf({ hostname }: { hostname: string }): string {
  return hostname.replace(/^\[|\]$/g, '')
}

/** A connection refused because it would have reached a forbidden address. */
export class RefusedTarget extends Error {
  constructor(hostname: string) {
    super(`${hostname} resolves to a private or reserved address, to which nothing is delivered`)
    this.name = 'RefusedTarget'
  }
}

/**
 * Returns an agent for deliveries: HTTP/1.1, only to vetted addresses (any address with `allowInsecure`). Like every
 * undici agent, it follows no redirects.
 * @returns an agent whose requests reject with RefusedTarget; the caller closes or destroys it
 */
export function guardedAgent({ allowInsecure }: TargetRules): Agent {
  const sockets = { allowH2: false, timeout: limits.webhookConnectMs }
  if (allowInsecure) return new Agent({ connect: sockets })
  const connect = buildConnector({ ...sockets, lookup: vettedLookup })
  return new Agent({
    connect: (target, callback) => {
      // Node does not look up a literal address, so `lookup` never sees it.
      const host = hostOf(target)
      if (isIP(host) !== 0 && isRefused(host)) callback(new RefusedTarget(host), null)
      else connect(target, callback)
    },
  })
}

/** Replaces Node's lookup for a socket. The socket then connects to one of exactly these addresses. */
export const vettedLookup: LookupFunction = (hostname, options, callback) => {
  addressesOf(hostname).then(
    (addresses) => {
      // One forbidden address is enough to refuse: the socket decides which one it uses.
      if (addresses.some(({ address }) => isRefused(address))) callback(new RefusedTarget(hostname), [])
      else if (options.all) callback(null, addresses)
      else callback(null, addresses[0]!.address, addresses[0]!.family)
    },
    (error: NodeJS.ErrnoException) => callback(error, []),
  )
}

/**
 * Returns the current addresses of a name, at least one; IPv4 first.
 * @throws {Error} of the DNS, with its code (ENOTFOUND, ETIMEOUT, ECANCELLED ...)
 */
async function addressesOf(hostname: string): Promise<LookupAddress[]> {
  const name = hostname.replace(/\.$/, '')
  const family = isIP(name)
  if (family !== 0) return [{ address: name, family }]
  // `localhost` is not looked up (RFC 6761, section 6.3).
  if (/(^|\.)localhost$/i.test(name)) return [{ address: '127.0.0.1', family: 4 }]
  // The process's default resolver takes no time-out. This one does, and queries the same servers.
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
