/** What to do about faults of a receiver that need a closer look. Pure. */
import { isIP } from 'node:net'
import type { WebhookPing } from '../../client/api/routes.ts'

/** Known texts of TLS errors, and what mends them. */
const tlsRemedies: readonly [pattern: RegExp, remedy: string][] = [
  [
    /altname|does not match/i,
    'The certificate is for other names: get one for this host, or correct the host in postUrl.',
  ],
  [/expired/i, 'The certificate has expired: renew it, and let the server load the new one.'],
  [/not yet valid/i, 'The certificate is not valid yet: check the clock of the machine that issued it.'],
  [
    /self.signed/i,
    'The certificate is self-signed: take one of a public authority, such as Let’s Encrypt. For a receiver on your own ' +
      'machine run grandlivre listen <its address>.',
  ],
  [
    /first certificate|local issuer|issuer certificate/i,
    'The server does not send the intermediate certificates: give it the full chain (fullchain.pem, not cert.pem).',
  ],
  [
    /wrong version number|packet length|http request/i,
    'What listens on this port speaks no TLS: correct the port in postUrl, or let the proxy end TLS on it.',
  ],
]

/** @param host with its port, if the address has one */
export function remediesOfTls(error: string, host: string): string[] {
  const known = tlsRemedies.filter(([pattern]) => pattern.test(error)).map(([, remedy]) => remedy)
  const { hostname, port } = new URL(`https://${host}`)
  const connect = `-connect ${hostname}:${port || 443}`
  // An address is no server name.
  const serverName = isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? ` -servername ${hostname}` : ''
  return [...known, `openssl s_client ${connect}${serverName} shows the certificate and its chain.`]
}

const unexplained =
  'If the receiver verifies signatures, it says too little: answer 401 with the body of the refusal of verifyWebhook ' +
  '(grandlivre/webhooks), and this command names the reason. Without it, it may be the secret, a body that was parsed ' +
  'before it was verified, or the clock.'

const refusedBeforeIt =
  'If something before the receiver asks for credentials of its own, let this path pass.'

const remediesByStatus: Readonly<Record<number, string[]>> = {
  401: [unexplained, refusedBeforeIt],
  403: [unexplained, refusedBeforeIt],
  404: ['Correct the path in postUrl: the receiver has no route there.'],
  405: ['Let the route at this path take POST.'],
  410: ['A delivery answered with 410 disables the subscription: answer it only if you want no more events.'],
  413: [
    'Take bodies of at least 100 KiB, and 1 MiB to be safe: a delivery has up to 90 KiB, a single event may have more.',
  ],
  415: ['Take application/json.'],
  429: [
    'Limit deliveries less: there is one request at a time. Retry-After is respected, and delays the events.',
  ],
}

/** @param status 400 to 499 */
export function clientErrorRemedies(status: number): string[] {
  return remediesByStatus[status] ?? [unexplained, 'Read the log of the receiver at that time.']
}

/** Differences below this are no fault. */
const noticedSkewMs = 60_000

/** Says which of three clocks is wrong: the receiver's, the service's or that of this machine. */
export function remediesOfClock({ receiverDate, at, milliseconds }: WebhookPing, now: number): string[] {
  const answeredAt = at + milliseconds
  const own = differenceText(now - answeredAt)
  const service =
    own === undefined
      ? []
      : [
          `The clock of this machine is ${own} that of the service. If this one is right, tell the operators of the service.`,
        ]
  const receiver = receiverDate === null ? undefined : differenceText(receiverDate - answeredAt)
  if (receiver !== undefined)
    return [
      `The clock of the receiver is ${receiver} that of the service: let it follow a time server (NTP).`,
      ...service,
    ]
  return [
    'The clock that the receiver compares with is wrong: let it follow a time server (NTP), and compare epoch milliseconds ' +
      'in UTC. A receiver may be five minutes off.',
    ...service,
  ]
}

/** `7 minutes ahead of`; undefined if it does not matter. */
export function differenceText(ms: number): string | undefined {
  if (Math.abs(ms) < noticedSkewMs) return undefined
  const minutes = Math.round(Math.abs(ms) / 60_000)
  const amount =
    minutes < 120 ? `${minutes} ${minutes === 1 ? 'minute' : 'minutes'}` : `${Math.round(minutes / 60)} hours`
  return ms > 0 ? `${amount} ahead of` : `${amount} behind`
}
