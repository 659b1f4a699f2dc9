/** Follows a folder: waits for a change, brings the copy up to date, and waits again, until it is stopped. */
import { setTimeout as delay } from 'node:timers/promises'
import { GrandlivreError } from '../../client/errors.ts'
import { bringUpToDate, type Step } from './bring-up-to-date.ts'
import { type Copying, isExpired, isGone, readChanges } from './folder.ts'
import { BusyLedger, type Poll, thoroughMs } from './settle.ts'

/** The longest that the service lets a request wait for a change. */
const waitSeconds = 30
/** After an error that may pass, unless the service says how long. */
const retryMs = 5_000
/** How long a step that runs may go on after the stop. */
const graceMs = 5_000

/**
 * @param onStep after each change of the copy
 * @returns when the signal aborts; a step that runs then is finished, or undone after {@link graceMs}
 */
export async function follow(copying: Copying, onStep: (step: Step) => void): Promise<void> {
  const stop = copying.folder.signal
  const stepping: Copying = { ...copying, folder: { ...copying.folder, signal: afterGrace(stop) } }
  let askedAllAt = performance.now()
  while (!stop.aborted) {
    try {
      const isDue = performance.now() - askedAllAt > thoroughMs
      const waited = isDue ? undefined : await waitForChange(copying)
      if (stop.aborted) return
      if (!isDue && waited === undefined) continue
      // A step that was undone has left its traces in the state that it was given.
      onStep(await bringUpToDate(stepping, await copying.target.state('copy'), waited?.poll))
      if (!waited?.poll) askedAllAt = performance.now()
    } catch (error) {
      if (stop.aborted) return
      if (!mayPass(error)) throw error
      copying.terminal.note(`${(error as Error).message}; asking again`)
      await delay((error as Partial<GrandlivreError>).retryAfterMs ?? retryMs, undefined, {
        signal: stop,
      }).catch(() => {})
    }
  }
}

/** @returns undefined if nothing changed; without a poll, every part has to be asked */
async function waitForChange({ folder, target }: Copying): Promise<{ poll?: Poll } | undefined> {
  const state = (await target.state('copy'))!
  const part = state.parts.find(({ exercice, draft }) => exercice === state.watched && !draft)
  // A folder without exercices: there is nothing to wait for, so it is asked from time to time.
  if (!part) {
    await delay(waitSeconds * 1000, undefined, { signal: folder.signal })
    return {}
  }
  const held = new AbortController()
  const end = () => held.abort(folder.signal.reason)
  folder.signal.addEventListener('abort', end)
  try {
    const waiting = { ...folder, signal: held.signal }
    const changes = await readChanges(waiting, part, state.extended, part.cursor!, waitSeconds)
    if (changes.cursor !== part.cursor) return { poll: { part, changes } }
    await changes.discard()
    return undefined
  } catch (error) {
    if (isGone(error) || isExpired(error)) return {}
    throw error
  } finally {
    // From now on the answer belongs to the step.
    folder.signal.removeEventListener('abort', end)
  }
}

function mayPass(error: unknown): boolean {
  if (error instanceof BusyLedger) return true
  return error instanceof GrandlivreError && [0, 429, 502, 503, 504].includes(error.status)
}

/** Aborts some time after the other signal. */
function afterGrace(stop: AbortSignal): AbortSignal {
  const late = new AbortController()
  const abort = () => setTimeout(() => late.abort(stop.reason), graceMs).unref()
  if (stop.aborted) abort()
  else stop.addEventListener('abort', abort, { once: true })
  return late.signal
}
