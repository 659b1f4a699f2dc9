/** Processes started by the bench, and their ports. They end with it, whatever happens. */
import { type ChildProcess, spawn } from 'node:child_process'
import { addAbortListener, once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { stopSignal } from '../src/stop-signal.ts'
import { defaultTiming } from '../src/timing.ts'

/** The folder of this checkout. */
export const project = fileURLToPath(new URL('..', import.meta.url))

/**
 * Ctrl-C at a terminal reaches a whole process group. In their own groups, the others do not get it: only the
 * bench does, and stops them in order. This also makes each a session, to which Linux gives its own share of
 * the processor, as to a unit of a service manager.
 */
const detached = true

/** Longer than a stopping service's own limit with the default of STOP_SECONDS. */
const stopTimeoutMs = 25_000 + defaultTiming.closeMs + 5_000

/** An uncaught error ends the bench without running any `finally`. */
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill()
})

export interface OwnProcess {
  pid: number
  /** Rejects when the process ends before it is stopped. */
  failed: Promise<never>
  stop(): Promise<void>
}

export interface StartOptions {
  /** Its whole environment, so that settings of the shell do not affect the measurement. */
  env: Record<string, string>
  /** By default the project's folder. */
  cwd?: string
}

/** Standard output goes to standard error: the bench's standard output is the table. */
export function startProcess(command: string[], { env, cwd = project }: StartOptions): OwnProcess {
  const [program, ...words] = command
  return own(spawn(program!, words, { cwd, env, stdio: ['ignore', 2, 2], detached }), command)
}

/**
 * Starts a program that listens and prints its address as its first line. It ends when its standard input
 * does, which is how it notices that the bench is gone.
 */
export async function startListener(
  command: string[],
  { env, cwd = project }: StartOptions,
): Promise<OwnProcess & { url: string }> {
  const [program, ...words] = command
  const child = spawn(program!, words, { cwd, env, stdio: ['pipe', 'pipe', 2], detached })
  const listener = own(child, command)
  const [url] = (await Promise.race([
    once(createInterface({ input: child.stdout! }), 'line'),
    listener.failed,
  ])) as [string]
  return { ...listener, url }
}

/** A script of the bench, as a command for `startListener`. */
export function script(path: string): string[] {
  return [process.execPath, fileURLToPath(new URL(path, import.meta.url))]
}

function own(child: ChildProcess, command: string[]): OwnProcess {
  let stopping = false
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const failed = new Promise<never>((_, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      if (!stopping)
        reject(new Error(`${command.at(-1)} ended unexpectedly (${signal ?? `exit code ${code}`})`))
    })
  })
  // A rejection may come when nothing awaits it.
  failed.catch(() => {})
  running.add(child)
  child.once('exit', () => running.delete(child))
  const stop = async (): Promise<void> => {
    stopping = true
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
    child.kill('SIGTERM')
    const deadline = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
    await ended
    clearTimeout(deadline)
  }
  return { pid: child.pid ?? 0, failed, stop }
}

/**
 * Runs a whole bench to the end of the process: `measure` returns the lines of standard output. Whatever
 * happens, including Ctrl-C, everything that `measure` leaves on the stack is stopped, last first.
 */
export function runBench(measure: (stack: AsyncDisposableStack) => Promise<string[]>): void {
  const run = async (): Promise<void> => {
    await using stack = new AsyncDisposableStack()
    const lines = await Promise.race([measure(stack), interrupted()])
    // A reader that stops early, such as head, is not a failure.
    process.stdout.on('error', () => {})
    process.stdout.write(`${lines.join('\n')}\n`)
  }
  run().then(
    () => process.exit(),
    (error: Error) => {
      process.stderr.write(`${error.message}\n`)
      process.exit(1)
    },
  )
}

function interrupted(): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = stopSignal(['SIGINT', 'SIGTERM', 'SIGHUP'])
  addAbortListener(stop, () => reject(new Error(`Stopped by ${stop.reason}`)))
  return promise
}

/** Reports what is running, on standard error. */
export function say(what: string): void {
  process.stderr.write(`${what}\n`)
}

/** A port of the loopback address on which nothing listens. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
