/**
 * `grandlivre webhook list` shows the caller's subscriptions. `webhook doctor` pings a receiver and names its fault.
 */
import { command, type Kind } from '../../../../terminal/src/command.ts'
import { Failure } from '../../../../terminal/src/command-errors.ts'
import { table } from '../../../../terminal/src/table.ts'
import { isAccepted, quoted } from '../answer-text.ts'
import type { CommandCall } from '../command.ts'
import {
  diagnose,
  differenceText,
  type Finding,
  type ReceiverReport,
  skewOf,
  slowFromMs,
} from './diagnosis.ts'

export const webhookList = command({
  name: 'webhook list',
  summary: 'list your subscriptions to events',
  about: 'Lists the subscriptions that the token sees, with their ids, oldest first.',
  async run({ ledger, terminal, signal, json }: CommandCall) {
    const subscriptions = await ledger().get('/webhook', { signal })
    if (json) return subscriptions.forEach(terminal.json)
    if (subscriptions.length === 0)
      return terminal.note('There is no subscription yet. POST /api/v1/webhook creates one.')
    const rows = subscriptions.map(({ id, postUrl, onEvents, accountingFolderId }) => [
      String(id),
      postUrl ?? 'none: events are read',
      accountingFolderId.join(',') || 'all',
      onEvents.join(','),
    ])
    terminal.print(table(['id', 'address', 'folders', 'events'], rows))
  },
})

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
  arguments: { id: { is: idKind, help: 'id of a subscription; grandlivre webhook list shows the ids' } },
  options: { enable: { help: 'enable the subscription if it is disabled and the ping is accepted' } },
  async run(call: CommandCall, { id, enable }) {
    const { terminal, signal, json } = call
    const ledger = call.ledger()
    const path = { id }
    const { postUrl } = await ledger.get('/webhook/{id}', { path, signal })
    if (postUrl === null) {
      const result = { id: Number(id), postUrl, healthy: true, enabled: false, findings: [], ping: null }
      if (json) return terminal.json(result)
      return terminal.print([
        `Subscription ${id} has no address, so nothing is posted: its events are read with`,
        `GET /api/v1/webhook/${id}/events. A PATCH of /postUrl gives it an address.`,
      ])
    }
    // The service accepts one ping a second. The library waits until it may send the next.
    const ping = await ledger.post('/webhook/{id}/ping', { path, signal })
    const now = Date.now()
    const query = { newest: 'true', limit: 20 } as const
    const deliveries = await ledger.get('/webhook/{id}/deliveries', { path, query, signal })
    const enabled = enable === true && ping.disabled !== null && isAccepted(ping.status)
    if (enabled) await ledger.patch('/webhook/{id}', { path, body: [], signal })
    const report = { postUrl, ping, deliveries, now }
    const findings = diagnose(report).filter(({ fault }) => !(enabled && fault === 'disabled'))
    const healthy = findings.length === 0
    if (json) terminal.json({ id: Number(id), postUrl, healthy, enabled, findings, ping })
    else terminal.print([`Subscription ${id} to ${postUrl}`, ...reportLines(report, findings, enabled)])
    if (healthy) return
    const faults = findings.map(({ fault }) => fault).join(', ')
    throw new Failure(`Subscription ${id} does not receive as it should: ${faults}`)
  },
})

function reportLines(
  { ping, deliveries }: ReceiverReport,
  findings: Finding[],
  isEnabled: boolean,
): string[] {
  const { status, milliseconds, answer, error } = ping
  const result = status === null ? `no response: ${error}` : `${status}${quoted(answer)}`
  const waiting = deliveries.filter(({ state }) => state === 'pending').length
  const lines = [
    `Ping: ${result} (after ${milliseconds} ms)`,
    deliveries.length === 0
      ? 'Deliveries: none so far'
      : `Deliveries: ${waiting} of the latest ${deliveries.length} not accepted yet`,
  ]
  if (isEnabled) lines.push('The subscription was disabled, and is enabled now.')
  for (const { fault, found, remedies } of findings)
    lines.push('', `Fault: ${fault}`, `  ${found}.`, ...remedies.map((remedy) => `  - ${remedy}`))
  if (findings.length > 0) return lines
  lines.push('', 'Healthy: the receiver accepts deliveries in time.')
  const clock = differenceText(skewOf(ping) ?? 0)
  if (clock !== undefined)
    lines.push(
      `Its clock is ${clock} that of the service. Receivers refuse deliveries from 5 minutes on: mend it.`,
    )
  return lines
}
