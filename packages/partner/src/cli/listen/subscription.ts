/**
 * The subscription of one `listen`. It is pull-only: the service posts nothing, so no address has to be public.
 *
 * It is deleted at the end, but a killed process leaves it behind. So each running `listen` keeps a note with its
 * subscription's id, its address and its process number, in a folder that all notes of this user share. The next
 * `listen` deletes the subscriptions whose process has ended, and no others: without a note, a subscription that was
 * left behind looks like one that a colleague or a program is reading.
 */
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir, hostname, uptime } from 'node:os'
import { join } from 'node:path'
import type { WebhookSubscriptionWithSecret } from '../../client/api/routes.ts'
import { type Grandlivre, GrandlivreError } from '../../client/grandlivre.ts'
import type { Access } from '../access.ts'
import { isRunning } from '../running-process.ts'

export type Subscription = WebhookSubscriptionWithSecret & {
  /**
   * Whether a note was written, by which the next `listen` finds the subscription. False if the folder of notes cannot
   * be written.
   */
  isNoted: boolean
}

type EventKind = WebhookSubscriptionWithSecret['onEvents'][number]

interface Note {
  id: number
  baseUrl: string
  /** Digest of the token. Only the token that made a subscription is certain to see it. */
  token: string
  host: string
  pid: number
  /** When the note was written, in epoch milliseconds. */
  at: number
}

/**
 * Most time for the deletion at the end. If it takes longer, the note stays and the next `listen` deletes the
 * subscription.
 */
const removeMs = 10_000

/** @param env environment of the process */
export function subscriptionsOf(
  ledger: Grandlivre,
  { baseUrl, token }: Pick<Access, 'baseUrl' | 'token'>,
  env: NodeJS.ProcessEnv,
) {
  const state = env['XDG_STATE_HOME'] || join(env['HOME'] || homedir(), '.local', 'state')
  const folder = join(state, 'grandlivre', 'listening')
  const digest = createHash('sha256').update(token).digest('hex')
  const noteOf = (id: number) => join(folder, `${id}.json`)

  const writeNote = async (id: number): Promise<boolean> => {
    const note: Note = { id, baseUrl, token: digest, host: hostname(), pid: process.pid, at: Date.now() }
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await writeFile(noteOf(id), JSON.stringify(note), { mode: 0o600 })
      return true
    } catch {
      return false
    }
  }

  const remove = async (id: number, signal: AbortSignal): Promise<void> => {
    try {
      await ledger.delete('/webhook/{id}', { path: { id }, signal })
    } catch (error) {
      if (!(error instanceof GrandlivreError) || error.status !== 404) throw error
    }
    await rm(noteOf(id), { force: true })
  }

  return {
    /**
     * @param kinds of events; empty: all
     * @param folders by id; empty: all that the token opens
     */
    async subscribe(kinds: string[], folders: string[], signal: AbortSignal): Promise<Subscription> {
      // Kinds are sent unchecked: the service refuses an unknown one and lists those that exist.
      const onEvents = (kinds.length > 0 ? kinds : await kindsOf(ledger, signal)) as EventKind[]
      const body = { postUrl: null, onEvents, accountingFolderId: folders }
      signal.throwIfAborted()
      // Not interruptible: a subscription whose id never arrived could not be deleted.
      const created = await ledger.post('/webhook', { body })
      return { ...created, isNoted: await writeNote(created.id) }
    },

    /** Deletes the subscription, also when the command was interrupted. */
    unsubscribe: (id: number): Promise<void> => remove(id, AbortSignal.timeout(removeMs)),

    /**
     * Deletes the subscriptions that killed processes of this machine and user left behind at this service with this
     * token.
     * @returns how many
     */
    async removeLeftBehind(signal: AbortSignal): Promise<number> {
      let removed = 0
      for (const name of await readdir(folder).catch(() => [])) {
        const note = await readNote(join(folder, name))
        if (!note || note.baseUrl !== baseUrl || note.token !== digest) continue
        if (note.host !== hostname() || isListening(note)) continue
        await remove(note.id, signal)
        removed += 1
      }
      return removed
    },
  }
}

/** All kinds of events that the service knows. */
async function kindsOf(ledger: Grandlivre, signal: AbortSignal): Promise<string[]> {
  const { components } = (await ledger.get('/openapi.json', { signal })) as {
    components: { schemas: { EventKind: { enum: string[] } } }
  }
  return components.schemas.EventKind.enum
}

/** @returns undefined for a file that is no note, and for a note that is still being written */
async function readNote(path: string): Promise<Note | undefined> {
  try {
    const note: Note = JSON.parse(await readFile(path, 'utf8'))
    return typeof note?.id === 'number' ? note : undefined
  } catch {
    return undefined
  }
}

/**
 * Whether the process that wrote a note still runs. After a restart of the machine its number may belong to another
 * process. In a container each `listen` has the same number, so a note with our own number is from an earlier `listen`:
 * this one has written none yet.
 */
function isListening({ pid, at }: Note): boolean {
  return pid !== process.pid && at >= Date.now() - uptime() * 1000 && isRunning(pid)
}
