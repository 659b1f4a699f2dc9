/** Finds the fault of a receiver of webhooks from what the service reports about it. Pure: no input or output. */
import { isIP } from 'node:net'
import type { WebhookDelivery, WebhookPing } from '../../client/api/routes.ts'
import type { WebhookRefusal } from '../../client/webhooks.ts'
import { isAccepted, quoted } from '../answer-text.ts'

/** What the service reports about a receiver (docs/spec/webhooks.md). Times are epoch milliseconds. */
export interface ReceiverReport {
  /** The address of the receiver. */
  postUrl: string
  ping: WebhookPing
  /** The newest deliveries, in order. */
  deliveries: WebhookDelivery[]
  /** The clock of this machine when the ping was answered. */
  now: number
}

type FaultWithoutResponse = NonNullable<WebhookPing['fault']>
type FaultOfVerifier = 'body-changed' | 'clock' | 'headers-missing' | 'wrong-secret'
export type Fault = FaultWithoutResponse | FaultOfVerifier | '4xx' | '5xx' | 'redirect' | 'slow' | 'disabled'

export interface Finding {
  fault: Fault
  /** What is wrong, in one sentence. */
  found: string
  /** What to do, in sentences, the likeliest first. */
  remedies: string[]
}

type FindingWithoutResponse = (postUrl: URL, error: string) => [found: string, ...remedies: string[]]

const finding = (fault: Fault, found: string, ...remedies: string[]): Finding => ({ fault, found, remedies })

const answerSoon = 'Answer 204 as soon as the events are stored, and work on them afterwards.'

/** A 2xx that took at least this long counts as slow: half of the ten seconds after which a delivery is lost. */
export const slowFromMs = 5_000
/** Time-outs older than this say nothing about the present. */
const recentMs = 24 * 3_600_000
/** Receivers refuse a delivery whose time differs from their clock by more than five minutes. */
const clockToleranceMs = 5 * 60_000

/** The fault that each refusal of the verifier (client/webhooks.ts) points to. */
const faultOfRefusal: Record<WebhookRefusal, FaultOfVerifier> = {
  'signature-missing': 'headers-missing',
  'date-missing': 'headers-missing',
  'webhook-headers-missing': 'headers-missing',
  'signature-wrong': 'wrong-secret',
  'body-changed': 'body-changed',
  'body-without-events': 'body-changed',
  'date-too-old': 'clock',
  'date-in-future': 'clock',
}

/** @returns the faults in the order in which to mend them; empty if the receiver is healthy */
export function diagnose(report: ReceiverReport): Finding[] {
  const found = faultOfPing(report) ?? refusedDelivery(report) ?? slowness(report)
  return [found, disabledFinding(report.ping, found !== undefined)].filter((each) => each !== undefined)
}

function faultOfPing(report: ReceiverReport): Finding | undefined {
  const { status } = report.ping
  if (status === null) return withoutResponse(report)
  return isAccepted(status) ? undefined : refusal(report)
}

function withoutResponse({ postUrl, ping }: ReceiverReport): Finding {
  // A later version of the service may send a word that this version does not know.
  const { fault, error } = ping
  const known = fault !== null && Object.hasOwn(findingsWithoutResponse, fault) ? fault : 'no-answer'
  return finding(known, ...findingsWithoutResponse[known](new URL(postUrl), error ?? 'no reason is given'))
}

const findingsWithoutResponse: Record<FaultWithoutResponse, FindingWithoutResponse> = {
  dns: ({ hostname }, error) => [
    `The name ${hostname} has no address: ${error}`,
    'Check the spelling of the host in postUrl.',
    `Look the name up from outside your network (dig ${hostname}): the service asks the DNS, and reads no hosts file.`,
  ],
  'address-refused': (_, error) => [
    `The service refuses this address by its rules: ${error}`,
    'Give a public https address: the service delivers to no private network, and not to its own.',
    'If the name has public and private addresses, remove the private ones: a single one is enough to refuse it.',
    'For a receiver on your own machine run grandlivre listen <its address>.',
  ],
  'connection-refused': ({ host, port, protocol }, error) => [
    `The address is allowed, but ${host} accepts no connection: ${error}`,
    `Start the receiver, and check that it listens on port ${port || (protocol === 'http:' ? 80 : 443)} and not only on 127.0.0.1.`,
    'Check firewalls and port forwarding from outside your network.',
  ],
  tls: ({ host }, error) => [`TLS with ${host} fails: ${error}`, ...remediesOfTls(error, host)],
  'time-out': ({ host }, error) => [
    `${host} gave no response in time: ${error}`,
    answerSoon,
    'If nothing arrives at the receiver, a firewall drops the connection without a word: open the port.',
  ],
  'no-answer': ({ host, protocol }, error) => [
    `${host} ended the connection without an HTTP response: ${error}`,
    'Read the log of the receiver: it may have crashed, or closed the connection before it answered.',
    protocol === 'http:'
      ? 'If the receiver speaks TLS, begin postUrl with https://.'
      : 'Check the proxy before it.',
  ],
}

/** The fault behind a response outside 2xx. */
function refusal({ ping, now }: ReceiverReport): Finding {
  const status = ping.status!
  const found = `The receiver answers ${status}${quoted(ping.answer)}`
  const reason = reasonIn(ping.answer)
  const fault = status >= 400 && reason !== undefined ? faultOfRefusal[reason] : undefined
  if (fault !== undefined && fault !== 'clock') return finding(fault, found, ...remediesOfRefusal[fault])
  if (status >= 300 && status <= 399)
    return finding(
      'redirect',
      `The receiver redirects (${status}), and deliveries follow no redirect`,
      'Set postUrl to the address that the redirect leads to: curl -i -X POST <postUrl> shows it as Location.',
    )
  const isUnauthorized = status === 401 || status === 403
  if (fault === 'clock' || (isUnauthorized && Math.abs(skewOf(ping) ?? 0) > clockToleranceMs))
    return finding('clock', found, ...remediesOfClock(ping, now))
  if (status >= 500 || status < 200)
    return finding(
      '5xx',
      found,
      'Read the log of the receiver at that time: it, or the proxy before it, failed.',
      'Answer 2xx once the events are stored, also for kinds that you do not use.',
    )
  return finding('4xx', found, ...clientErrorRemedies(status))
}

const remediesOfRefusal: Record<Exclude<FaultOfVerifier, 'clock'>, string[]> = {
  'wrong-secret': [
    'Compare the secrets of the receiver: secret is the partner secret (glv_secret_...), signingSecret that of this ' +
      'subscription (whsec_...). They are not interchangeable, and each subscription has its own.',
    'If the signing secret is lost, POST /webhook/{id}/rotate-secret shows a new one.',
    'After a rotation of the partner secret give the receiver the new one; it may keep the old one beside it.',
  ],
  'body-changed': [
    'Verify the raw bytes, before any JSON parser: Express needs express.raw({ type: "application/json" }), not ' +
      'express.json(); with fetch types take request.arrayBuffer(), not request.json().',
    'If the receiver does so, a proxy before it changes bodies: switch that off for this path.',
  ],
  'headers-missing': [
    'A proxy before the receiver removes headers: let signature, date, content-digest and webhook-* pass.',
    'If the receiver gives the verifier headers of its own making, pass those of the request as they are.',
  ],
}

/** The reason for which the verifier refused, if the receiver sent that reason as its answer. */
function reasonIn(answer: string | null): WebhookRefusal | undefined {
  if (answer === null) return undefined
  // The verifier throws this if it is given a parsed body. Some frameworks send the texts of errors as answers.
  if (answer.includes('verifyWebhook needs the raw body')) return 'body-changed'
  try {
    const reason: unknown = JSON.parse(answer)?.reason
    const isKnown = typeof reason === 'string' && Object.hasOwn(faultOfRefusal, reason)
    return isKnown ? (reason as WebhookRefusal) : undefined
  } catch {
    return undefined
  }
}

/**
 * Finds a delivery that waits because the receiver refused it although it accepts the ping. A disabled subscription is
 * skipped: all its deliveries wait.
 */
function refusedDelivery({ ping, deliveries }: ReceiverReport): Finding | undefined {
  if (ping.disabled !== null) return undefined
  const waiting = deliveries.find(({ state }) => state === 'pending')
  const last = waiting?.attempts.at(-1)
  if (!waiting || !last || last.status === null || isAccepted(last.status)) return undefined
  const events = waiting.sequence === null ? '' : ` with the events ${waiting.sequence}`
  const next =
    waiting.nextAttemptAt === null ? '' : ` The next attempt is at ${timeText(waiting.nextAttemptAt)}.`
  return finding(
    last.status >= 500 ? '5xx' : last.status >= 400 ? '4xx' : 'redirect',
    `The ping is accepted, but delivery ${waiting.id}${events} was answered with ${last.status} at ` +
      `${timeText(last.at)}${quoted(last.answer)}`,
    `If you mended the receiver after that, there is nothing left to do.${next}`,
    'Otherwise it fails on one of these events: read its log at that time, and answer 2xx for kinds that you do not use.',
  )
}

function slowness({ ping, deliveries, now }: ReceiverReport): Finding | undefined {
  if (ping.milliseconds >= slowFromMs)
    return finding(
      'slow',
      `The receiver took ${ping.milliseconds} ms; after 10 seconds a delivery counts as lost and is sent again`,
      answerSoon,
    )
  const late = deliveries
    .flatMap(({ attempts }) => attempts)
    .filter(({ at, error }) => at > now - recentMs && error?.startsWith('no response within'))
  if (late.length === 0) return undefined
  const times = late.length === 1 ? 'One attempt' : `${late.length} attempts`
  return finding(
    'slow',
    `The ping is answered after ${ping.milliseconds} ms, but the receiver is slow at times: ${times} at deliveries ` +
      `timed out within a day, the last at ${timeText(late.at(-1)!.at)}`,
    answerSoon,
  )
}

function disabledFinding({ disabled }: WebhookPing, isFaulty: boolean): Finding | undefined {
  if (disabled === null) return undefined
  const { since, reason } = disabled
  const how =
    'grandlivre webhook doctor <id> --enable enables the subscription; so does any PATCH, an empty one ([]) too.'
  return finding(
    'disabled',
    `The subscription is disabled since ${timeText(since)}: ${reason}. Nothing is delivered`,
    isFaulty ? `Mend the fault above first, then: ${how}` : how,
    'Deliveries go on where they stopped. Events are kept for 30 days.',
  )
}

/** Milliseconds by which the receiver's clock is ahead of the service's; undefined if the receiver sent no date. */
export function skewOf({ receiverDate, at, milliseconds }: WebhookPing): number | undefined {
  return receiverDate === null ? undefined : receiverDate - (at + milliseconds)
}

function timeText(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** Known texts of TLS errors, each with what mends it. */
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

/** @param host with the port, if the address has one */
export function remediesOfTls(error: string, host: string): string[] {
  const known = tlsRemedies.filter(([pattern]) => pattern.test(error)).map(([, remedy]) => remedy)
  const { hostname, port } = new URL(`https://${host}`)
  const connect = `-connect ${hostname}:${port || 443}`
  // A server name (SNI) must not be an IP address.
  const serverName = isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? ` -servername ${hostname}` : ''
  return [...known, `openssl s_client ${connect}${serverName} shows the certificate and its chain.`]
}

const unexplained =
  'The answer does not say why. If the receiver verifies signatures, answer 401 with the body that verifyWebhook ' +
  '(grandlivre/webhooks) gives: then this command names the reason. Until then it may be the secret, a body that was ' +
  'parsed before it was verified, or the clock.'

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
function clientErrorRemedies(status: number): string[] {
  return remediesByStatus[status] ?? [unexplained, 'Read the log of the receiver at that time.']
}

/** Differences between clocks below this are no fault. */
const noticedSkewMs = 60_000

/** Says which of three clocks is wrong: that of the receiver, of the service or of this machine. */
function remediesOfClock({ receiverDate, at, milliseconds }: WebhookPing, now: number): string[] {
  const answeredAt = at + milliseconds
  const own = differenceText(now - answeredAt)
  const receiver = receiverDate === null ? undefined : differenceText(receiverDate - answeredAt)
  const remedies = [
    receiver === undefined
      ? 'The clock that the receiver compares with is wrong: let it follow a time server (NTP), and compare epoch ' +
        'milliseconds in UTC. A receiver may be five minutes off.'
      : `The clock of the receiver is ${receiver} that of the service: let it follow a time server (NTP).`,
  ]
  if (own !== undefined)
    remedies.push(
      `The clock of this machine is ${own} that of the service. If this one is right, tell the operators of the service.`,
    )
  return remedies
}

/** The difference in words, such as `7 minutes ahead of`; undefined below a minute. */
export function differenceText(ms: number): string | undefined {
  if (Math.abs(ms) < noticedSkewMs) return undefined
  const minutes = Math.round(Math.abs(ms) / 60_000)
  const amount =
    minutes < 120 ? `${minutes} ${minutes === 1 ? 'minute' : 'minutes'}` : `${Math.round(minutes / 60)} hours`
  return ms > 0 ? `${amount} ahead of` : `${amount} behind`
}
