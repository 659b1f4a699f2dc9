/** `grandlivre webhook doctor`: pings a receiver and names its fault. */

import { command, type Kind } from '../../../../terminal/src/command.ts'
import { Failure } from '../../../../terminal/src/command-errors.ts'
import type { Terminal } from '../../../../terminal/src/terminal.ts'
import type { WebhookPing } from '../../client/api/routes.ts'
import type { Grandlivre } from '../../client/grandlivre.ts'
import { isAccepted, quoted } from '../answer-text.ts'
import type { Call } from '../command.ts'
import { diagnose, type Finding, type Seen, skewOf, slowFromMs } from './diagnosis.ts'
import { differenceText } from './remedies.ts'

const idKind: Kind<string> = {
  takes: 'the id of a subscription, such as 1000',
  read: (text) => (/^\d{1,16}$/.test(text) ? text : undefined),
}

export const webhookDoctor = command({
  name: 'webhook doctor',
  summary: 'ping the receiver of a subscription and name its fault',
  about: `Sends a ping to the address of a subscription, reads its latest deliveries, and
says what is wrong and what to do: DNS, a refused address, TLS, a time-out, a
redirect, 4xx, 5xx, a wrong secret, a changed body, the clock, a slow receiver
(from ${slowFromMs} ms on), or a disabled subscription. A receiver should answer a
refused delivery with the body that verifyWebhook gives: then the reason is
certain. A ping changes nothing.

Exit codes: 0 healthy, 1 a fault.`,
  arguments: { id: { is: idKind, help: 'of a subscription; grandlivre webhook list shows them' } },
  options: { enable: { help: 'enable the subscription if it is disabled and the ping is accepted' } },
  run: runDoctor,
})

async function runDoctor(call: Call, { id, enable: isWanted }: { id: string; enable?: true }): Promise<void> {
  const { terminal, signal, json } = call
  const ledger = call.ledger()
  const { postUrl } = await ledger.get('/webhook/{id}', { path: { id }, signal })
  if (postUrl === null) return showWithoutAddress(terminal, id, json)
  const seen = await examine(ledger, id, postUrl, signal)
  const isEnabled = isWanted === true && (await enable(ledger, id, seen.ping, signal))
  const findings = diagnose(seen).filter(({ fault }) => !(isEnabled && fault === 'disabled'))
  if (json)
    terminal.json({
      id: Number(id),
      postUrl,
      healthy: findings.length === 0,
      enabled: isEnabled,
      findings,
      ping: seen.ping,
    })
  else terminal.print(linesOf(id, seen, findings, isEnabled))
  if (findings.length > 0)
    throw new Failure(
      `Subscription ${id} does not receive as it should: ${findings.map(({ fault }) => fault).join(', ')}`,
    )
}

function showWithoutAddress(terminal: Terminal, id: string, json: boolean): void {
  const result = { id: Number(id), postUrl: null, healthy: true, enabled: false, findings: [], ping: null }
  if (json) terminal.json(result)
  else {
    terminal.print(`Subscription ${id} has no address, so nothing is posted: its events are read with`)
    terminal.print(`GET /api/v1/webhook/${id}/events. A PATCH of /postUrl gives it an address.`)
  }
}

/** A ping too many within a second is sent later. */
async function examine(ledger: Grandlivre, id: string, postUrl: string, signal: AbortSignal): Promise<Seen> {
  const path = { id }
  const ping = await ledger.post('/webhook/{id}/ping', { path, signal })
  const now = Date.now()
  const query = { newest: 'true', limit: 20 } as const
  const deliveries = await ledger.get('/webhook/{id}/deliveries', { path, query, signal })
  return { postUrl, ping, deliveries, now }
}

/** @returns whether it was disabled, and is enabled now */
async function enable(
  ledger: Grandlivre,
  id: string,
  ping: WebhookPing,
  signal: AbortSignal,
): Promise<boolean> {
  if (ping.disabled === null || !isAccepted(ping.status)) return false
  await ledger.patch('/webhook/{id}', { path: { id }, body: [], signal })
  return true
}

function linesOf(
  id: string,
  { postUrl, ping, deliveries }: Seen,
  findings: Finding[],
  isEnabled: boolean,
): string[] {
  const { status, milliseconds, answer, error } = ping
  const result = status === null ? `no response: ${error}` : `${status}${quoted(answer)}`
  const waiting = deliveries.filter(({ state }) => state === 'pending').length
  const skew = skewOf(ping)
  const clock = skew === undefined ? undefined : differenceText(skew)
  return [
    `Subscription ${id} to ${postUrl}`,
    `Ping: ${result} (after ${milliseconds} ms)`,
    deliveries.length === 0
      ? 'Deliveries: none so far'
      : `Deliveries: ${waiting} of the latest ${deliveries.length} not accepted yet`,
    ...(isEnabled ? ['The subscription was disabled, and is enabled now.'] : []),
    ...findings.flatMap(({ fault, found, remedies }) => [
      '',
      `Fault: ${fault}`,
      `  ${found}.`,
      ...remedies.map((remedy) => `  - ${remedy}`),
    ]),
    ...(findings.length === 0 ? ['', 'Healthy: the receiver accepts deliveries in time.'] : []),
    ...(findings.length === 0 && clock
      ? [`Its clock is ${clock} that of the service. Receivers refuse deliveries from 5 minutes on: mend it.`]
      : []),
  ]
}
