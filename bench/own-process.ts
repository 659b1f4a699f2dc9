/** Processes that the bench starts, and that end with it whatever happens. */
import type { ChildProcess } from 'node:child_process'
import { fork, spawn } from 'node:child_process'
import { addAbortListener, once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { stopSignal } from '../src/stop-signal.ts'
import { defaultTiming } from '../src/timing.ts'

/**
 * Ctrl-C at a terminal reaches a whole process group: the bench alone hears it, and stops the others in order. It also
 * makes each a session, to which Linux gives its own share of the processor, as to a unit of a service manager.
 */
const detached = true

/** A service that stops gets longer than its own limit. */
const stopTimeoutMs = defaultTiming.stopMs + 5_000

export interface OwnProcess {
  child: ChildProcess
  pid: number
  /** Rejects when the process ends before it is stopped. */
  failed: Promise<never>
  stop(): Promise<void>
}

/**
 * Runs a script of package.json as npm does, in the project's folder. Its output goes to standard error: standard
 * output is the table's.
 * @param env all of its environment, so that settings of the shell do not change what is measured
 */
export function startCommand(command: string, env: Record<string, string>): OwnProcess {
  const cwd = fileURLToPath(new URL('..', import.meta.url))
  const child = spawn('sh', ['-c', command], { cwd, env, stdio: ['ignore', 2, 2], detached })
  return own(child, command)
}

/** Runs a script of the bench, with a channel for messages, over which it also learns that the bench is gone. */
export function startPeer(script: URL): OwnProcess {
  const child = fork(fileURLToPath(script), { env: {}, stdio: ['ignore', 2, 2, 'ipc'], detached })
  return own(child, script.pathname)
}

/** The next message of a peer, or its end as an error. */
export async function nextMessage<Message>(peer: OwnProcess): Promise<Message> {
  const message = once(peer.child, 'message').then(([first]) => first as Message)
  return Promise.race([message, peer.failed])
}

function own(child: ChildProcess, script: string): OwnProcess {
  let stopping = false
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const failed = new Promise<never>((_, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      if (!stopping) reject(new Error(`${script} ended by itself (${signal ?? `exit code ${code}`})`))
    })
  })
  // Somebody may be listening at that moment, or nobody.
  failed.catch(() => {})
  // The way out that passes every `finally` by: an error that nobody caught.
  const kill = (): void => void child.kill()
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  const stop = async (): Promise<void> => {
    stopping = true
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
    child.kill('SIGTERM')
    const deadline = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
    await ended
    clearTimeout(deadline)
  }
  return { child, pid: child.pid ?? 0, failed, stop }
}

/** Rejects at Ctrl-C and the like, so that what was started is stopped in order. */
export function interrupted(): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = stopSignal(['SIGINT', 'SIGTERM', 'SIGHUP'])
  addAbortListener(stop, () => reject(new Error(`Stopped by ${stop.reason}`)))
  return promise
}
