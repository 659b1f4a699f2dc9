/** `grandlivre listen`: real events at a receiver on this machine, without an address that the internet can reach. */

import { command, type Given, numberKind } from '../../../../terminal/src/command.ts'
import { UsageError } from '../../../../terminal/src/command-errors.ts'
import type { Terminal } from '../../../../terminal/src/terminal.ts'
import type { Notification } from '../../client/api/items.ts'
import type { EventGap } from '../../client/events.ts'
import type { Grandlivre } from '../../client/grandlivre.ts'
import { version } from '../../version.ts'
import { isAccepted, quoted } from '../answer-text.ts'
import type { Call } from '../command.ts'
import { type Attempted, forwarding, type Receiver } from './forwarding.ts'
import {
  notesFolder,
  type Place,
  removeLeftBehind,
  type Subscription,
  subscribe,
  unsubscribe,
} from './subscription.ts'
import { readTarget } from './target.ts'

const options = {
  events: { value: 'kinds', help: 'only these, such as ledger,cloudDocument; all otherwise' },
  folders: { value: 'ids', help: 'with the token of a firm: only events of these folders' },
  count: {
    value: 'n',
    is: numberKind('a number of events', 1, 999_999_999),
    help: 'end after n events were accepted',
  },
  'allow-remote': { help: 'allow an address that is not this machine; the events leave it' },
} as const

type Listen = Given<{ address: { help: string } }, typeof options>

export const listen = command({
  name: 'listen',
  summary: 'bring signed events to a receiver on this machine',
  about: `Sends every event to a receiver on this machine with the body, headers and both
signatures of a real delivery. A receiver that fails gets it again after 1, 2,
5, 10 and then every 15 seconds. Prints each event with the status that the
receiver answered.

It uses a subscription of its own, whose signing secret it prints, and deletes
it at the end. Other subscriptions get their events as before.

Keys: r sends the last delivery again, or tries at once what failed; q ends.`,
  arguments: { address: { help: 'of your receiver, such as http://localhost:3000/hook' } },
  options,
  examples: ['grandlivre listen http://localhost:3000/hook --events ledger'],
  run: runListen,
})

async function runListen(call: Call, given: Listen): Promise<void> {
  const { terminal, signal } = call
  const target = readTarget(given.address, given['allow-remote'] === true)
  const kinds = readWords('events', given.events)
  const chosen = readWords('folders', given.folders)
  const access = call.access()
  const folders = chosen.length === 0 && access.society !== undefined ? [access.society] : chosen
  const place: Place = { ledger: call.ledger(), access, folder: notesFolder(call.env) }
  const removed = await removeLeftBehind(place, signal)
  if (removed > 0) terminal.note(`Deleted what a killed listen left: ${removed} of its subscriptions.`)
  const subscription = await subscribe(place, { kinds, folders }, signal)
  try {
    introduce(terminal, target, kinds, subscription)
    const receiver = { target, secret: access.secret, signingSecret: subscription.signingSecret, version }
    await forwardUntilEnd(call, place.ledger, subscription.id, receiver, given.count)
  } finally {
    terminal.endProgress()
    await unsubscribe(place, subscription.id).catch((error: Error) => {
      const next = subscription.isNoted ? 'The next listen deletes it.' : 'Delete it later.'
      terminal.warn(`The subscription ${subscription.id} could not be deleted: ${error.message}. ${next}`)
    })
  }
}

/** @returns none without the option. An empty one is no wish for all: a variable of a script may be unset. */
function readWords(option: string, list: string | undefined): string[] {
  const words = (list ?? '').split(',').flatMap((word) => word.trim() || [])
  if (list !== undefined && words.length === 0)
    throw new UsageError(`--${option} is empty. Leave it out for all`)
  return words
}

function introduce(terminal: Terminal, target: URL, kinds: string[], subscription: Subscription): void {
  const { id, accountingFolderId, signingSecret, isNoted } = subscription
  const folders = accountingFolderId.length > 0 ? ` of folder ${accountingFolderId.join(', ')}` : ''
  terminal.note(`Listening for ${kinds.join(', ') || 'all kinds of events'}${folders}.`)
  terminal.note(`Deliveries go to ${target.href}. Their signatures:`)
  terminal.note('  signature          with your partner secret')
  terminal.note(`  webhook-signature  with ${signingSecret}`)
  if (!isNoted) terminal.note(`If this process is killed, its subscription ${id} stays: delete it then.`)
  if (terminal.keys) terminal.note('r sends the last delivery again, q ends.')
}

async function forwardUntilEnd(
  { terminal, signal, json }: Call,
  ledger: Grandlivre,
  subscriptionId: number,
  receiver: Receiver,
  countMax: number | undefined,
): Promise<void> {
  const quit = new AbortController()
  const shown = {
    attempted: (attempted: Attempted) => show(terminal, json, receiver.target, attempted),
    jumped: ({ from, to, epoch }: EventGap) =>
      terminal.warn(
        `Numbers ${from} to ${to} are left out${epoch === undefined ? ': lost, or erased with their folder' : `: epoch ${epoch} began on another server, and events may be lost. Ask each ledger for what changed (since)`}.`,
      ),
    nothingToReplay: () => terminal.note('There is no delivery yet to send again.'),
  }
  const ending = AbortSignal.any([signal, quit.signal])
  const running = forwarding(ledger, subscriptionId, receiver, shown, ending)
  const keys = terminal.keys?.(ending)
  const reading = keys && readKeys(keys, { r: () => running.again(), q: () => quit.abort() })
  try {
    await running.run(countMax)
  } catch (error) {
    if (signal.aborted || !quit.signal.aborted) throw error
  } finally {
    quit.abort()
    await reading
  }
}

async function readKeys(keys: AsyncIterable<string>, actions: Record<string, () => void>): Promise<void> {
  for await (const key of keys) actions[key.toLowerCase()]?.()
}

function show(terminal: Terminal, json: boolean, target: URL, attempted: Attempted): void {
  const { batch, status, milliseconds, error, answer, attempt, isReplay, pauseMs } = attempted
  if (pauseMs !== null || (isReplay && !isAccepted(status))) {
    const what = status === null ? `gives no response: ${error}` : `answers ${status}${quoted(answer)}`
    const next = pauseMs === null ? '' : ` Trying again in ${pauseMs / 1000} s.`
    terminal.note(`${target.host} ${what}.${next}`)
    return
  }
  for (const { sequence, event } of batch.events)
    if (json) terminal.json({ sequence, status, milliseconds, attempts: attempt, isReplay, event })
    else
      terminal.print(lineOf(event, sequence, `${status} in ${milliseconds} ms${isReplay ? ', again' : ''}`))
}

/** `12:00:01  cloudDocument CREATE export_...  #3  204 in 8 ms` */
function lineOf(event: Notification, sequence: number, how: string): string {
  const { name, operation, data, webhookId, createdAt } = event
  const time = new Date(createdAt).toLocaleTimeString('en-GB')
  const id = 'id' in data ? data.id : webhookId
  return `${time}  ${name} ${operation} ${id}  #${sequence}  ${how}`
}
