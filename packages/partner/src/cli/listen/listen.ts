/** `grandlivre listen` sends real events to a receiver on this machine, which needs no public address. */
import { isIP } from 'node:net'
import { command, numberKind } from '../../../../terminal/src/command.ts'
import { UsageError } from '../../../../terminal/src/command-errors.ts'
import type { Terminal } from '../../../../terminal/src/terminal.ts'
import type { CommandCall } from '../command.ts'
import { forwarding } from './forwarding.ts'
import { type Subscription, subscriptionsOf } from './subscription.ts'

export const listen = command({
  name: 'listen',
  summary: 'send signed events to a receiver on this machine',
  about: `Sends every event to a receiver on this machine with the body, headers and both
signatures of a real delivery. If the receiver fails, the delivery is repeated
after 1, 2, 5 and 10 seconds, then every 15 seconds. Prints each event with the
status that the receiver answered.

It uses a subscription of its own, whose signing secret it prints, and deletes
it at the end. Other subscriptions get their events as before.

Keys: r sends the last delivery again, or tries at once what failed; q ends.`,
  arguments: { address: { help: 'address of your receiver, such as http://localhost:3000/hook' } },
  options: {
    events: { value: 'kinds', help: 'only these kinds, such as ledger,cloudDocument; otherwise all' },
    folders: { value: 'ids', help: 'with the token of a firm: only events of these folders' },
    count: {
      value: 'n',
      is: numberKind('a number of events', 1, 999_999_999),
      help: 'end after n events were accepted',
    },
    'allow-remote': { help: 'allow an address that is not this machine; the events leave it' },
  },
  examples: ['grandlivre listen http://localhost:3000/hook --events ledger'],
  async run(call: CommandCall, given) {
    const { terminal, signal } = call
    const target = readTarget(given.address, given['allow-remote'] === true)
    const kinds = readWords('events', given.events)
    const chosen = readWords('folders', given.folders)
    const { secret, ...access } = call.access()
    const folders = chosen.length === 0 && access.society !== undefined ? [access.society] : chosen
    const ledger = call.ledger()
    const { removeLeftBehind, subscribe, unsubscribe } = subscriptionsOf(ledger, access, call.env)
    const removed = await removeLeftBehind(signal)
    if (removed > 0) terminal.note(`Deleted subscriptions that a killed listen left: ${removed}`)
    const subscription = await subscribe(kinds, folders, signal)
    const quit = new AbortController()
    const ending = AbortSignal.any([signal, quit.signal])
    let reading: Promise<void> | undefined
    try {
      introduce(terminal, target, kinds, subscription)
      const { run, again } = forwarding(call, ledger, subscription, { target, secret }, ending)
      reading = terminal.keys && readKeys(terminal.keys(ending), { r: again, q: () => quit.abort() })
      await run(given.count)
    } catch (error) {
      if (signal.aborted || !quit.signal.aborted) throw error
    } finally {
      quit.abort()
      await reading
      terminal.endProgress()
      await unsubscribe(subscription.id).catch((error: Error) => {
        const next = subscription.isNoted ? 'The next listen deletes it.' : 'Delete it later.'
        terminal.warn(`The subscription ${subscription.id} could not be deleted: ${error.message}. ${next}`)
      })
    }
  },
})

/**
 * @returns an empty list without the option. An empty option is an error and does not mean all: a script may have left
 *   a variable unset.
 */
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

async function readKeys(keys: AsyncIterable<string>, actions: Record<string, () => void>): Promise<void> {
  for await (const key of keys) actions[key.toLowerCase()]?.()
}

/**
 * Keeps the events of a ledger on this machine unless the user allows otherwise: a wrong address would give them away.
 * @throws {UsageError} that says what to change
 */
export function readTarget(text: string, allowRemote: boolean): URL {
  if (!URL.canParse(text) || !/^https?:\/\//i.test(text))
    throw new UsageError(`"${text}" is no address of a receiver, such as http://localhost:3000/hook`)
  const url = new URL(text)
  if (url.username !== '' || url.password !== '')
    throw new UsageError(
      `The address of the receiver holds a user name or password; deliveries are signed instead`,
    )
  if (!allowRemote && !isLoopback(url.hostname))
    throw new UsageError(
      `${url.hostname} is not this machine, and the events of a ledger would leave it. --allow-remote allows that`,
    )
  url.hash = ''
  return url
}

function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) === 4) return host.startsWith('127.')
  // The URL parser has already shortened every spelling of the address.
  return host === '::1' || host === 'localhost' || host.endsWith('.localhost')
}
