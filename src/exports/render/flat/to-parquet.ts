/**
 * Turns our CSV into Parquet in a process of its own: DuckDB has 68 MB of code, needs 300 MB for any ledger, and may
 * run out of memory. That must end an export, not the service.
 *
 * DuckDB opens files by name. Under the names /dev/stdin and /dev/stdout it can open pipes, but not the sockets that
 * Node gives its children, so a shell puts a `cat` on either side. Nothing is on disk, so a kill leaves nothing there.
 * If the service is killed, the input and output of the three processes end, and so do the processes.
 */

import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { getCompileCacheDir } from 'node:module'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { ParquetFailure } from '../../../formats/file-formats.ts'
import type { Chunks } from '../../chunks.ts'

const program = fileURLToPath(new URL('../../../write-parquet.ts', import.meta.url))

/**
 * Only the process in the middle keeps the channel, descriptor 3. If it is killed, the others are killed too: the first
 * `cat` would otherwise wait for CSV.
 */
const pipeline = 'cat 3>&- | { "$0" "$@" || kill -9 0; } | cat 3>&-'

/** Limits the heap of JavaScript, which the process hardly uses. */
const nodeOptions = ['--max-old-space-size=64', '--max-semi-space-size=1']

/** The message of the process before it ends: the number of rows in its file, or why there is no file. */
interface Outcome {
  rows?: number
  error?: string
}

/**
 * @param csv each of its chunks is copied before the next is asked for
 * @param rows returns how many rows the CSV had, once it has ended
 * @param stopped when aborted, the process is killed, even if it hangs
 * @throws {ParquetFailure}
 */
export async function* toParquet(
  csv: AsyncIterable<Uint8Array>,
  rows: () => number,
  stopped?: AbortSignal,
): Chunks {
  const child = startProcess()
  let failure: unknown
  let isSent = false
  const stop = () => kill(child)
  stopped?.addEventListener('abort', stop)
  try {
    const outcome = outcomeOf(child)
    // Rejects if no process could be started.
    await once(child, 'spawn')
    feed(child, csv).then(
      (sent) => {
        isSent = sent
      },
      (thrown) => {
        failure = thrown
        // Otherwise the process would take this part of the CSV for the whole.
        kill(child)
      },
    )
    for await (const bytes of child.stdout) yield bytes
    const { rows: written, error } = await outcome
    if (failure) throw failure
    // Node closes the pipe when the shell alone is killed: the process then writes a part, or cannot read its last row.
    const isKilled = child.signalCode !== null
    if (error !== undefined && !isKilled) throw new ParquetFailure(error, false)
    if (!isSent || written !== rows())
      throw new ParquetFailure('the process that writes Parquet was ended', true)
  } finally {
    stopped?.removeEventListener('abort', stop)
    kill(child)
  }
}

type Process = ChildProcessByStdio<Writable, Readable, null>

/**
 * Starts the process in a group of its own, so that all three processes can be killed together. It gets no settings,
 * hence no secrets.
 */
function startProcess(): Process {
  const cache = getCompileCacheDir()
  const child = spawn('/bin/sh', ['-c', pipeline, process.execPath, ...nodeOptions, program], {
    detached: true,
    env: cache === undefined ? {} : { NODE_COMPILE_CACHE: cache },
    stdio: ['pipe', 'pipe', 'ignore', 'ipc'],
  }) as Process
  child.on('error', () => {})
  child.stdin.on('error', () => {})
  return child
}

/** The message of the process; empty if it was killed before it sent one. */
function outcomeOf(child: Process): Promise<Outcome> {
  return new Promise((resolve) => {
    child.once('message', (outcome: Outcome) => resolve(outcome))
    child.once('close', () => resolve({}))
  })
}

/**
 * Sends the CSV. If the process ends first, sending stops without an error: the outcome contains the reason.
 * @returns whether all of it was sent
 * @throws the error of the CSV
 */
async function feed({ stdin }: Process, csv: AsyncIterable<Uint8Array>): Promise<boolean> {
  for await (const chunk of csv)
    if (!(await new Promise((resolve) => stdin.write(chunk, (error) => resolve(!error))))) return false
  stdin.end()
  return true
}

function kill(child: Process): void {
  const { pid, exitCode, signalCode } = child
  // The id of a process that has ended may belong to another.
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGKILL')
}
