/** What a run of the tests leaves behind that does not come to its end. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, test } from 'vitest'
import { until } from '../support/until.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))

let temporary: string
let run: ChildProcess

beforeEach(async () => {
  temporary = await mkdtemp(join(tmpdir(), 'grandlivre-interrupted-'))
  await chmod(temporary, 0o755)
  // Tests with a server of their own beside that of the run.
  run = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', 'test/db/database.test.ts'], {
    cwd: project,
    env: { PATH: process.env['PATH'], TMPDIR: temporary },
    detached: true,
    stdio: 'ignore',
  })
})

afterEach(async () => {
  // First what could start more of them: a run that a test has given up on. Its group, as it is detached.
  kill(-run.pid!)
  for (const { pid } of await servers()) kill(pid)
  await rm(temporary, { recursive: true, force: true })
})

test.each([
  ['Ctrl-C, which reaches the whole group of the terminal', 'SIGINT', 'group'],
  ['SIGTERM', 'SIGTERM', 'process'],
  ['SIGKILL', 'SIGKILL', 'process'],
] as const)('%s: neither servers nor files', { timeout: 180_000 }, async (_, signal, whom) => {
  await until(async () => (await servers()).length >= 2)
  const started = await servers()
  process.kill(whom === 'group' ? -run.pid! : run.pid!, signal)
  await once(run, 'close')
  await until(async () => (await readdir(temporary)).length === 0)
  for (const { port } of started) await until(() => isFree(port))
})

/** The PostgreSQL servers that were started below the temporary folder: process id on line 1, port on line 4. */
async function servers(): Promise<{ pid: number; port: number }[]> {
  const paths = await readdir(temporary, { recursive: true }).catch(() => [])
  const locks = paths.filter((path) => path.endsWith('/postmaster.pid'))
  const texts = await Promise.all(
    locks.map((lock) => readFile(join(temporary, lock), 'utf8').catch(() => '')),
  )
  return texts
    .map((text) => text.split('\n'))
    .map((lines) => ({ pid: Number(lines[0]), port: Number(lines[3]) }))
    .filter(({ pid, port }) => pid > 0 && port > 0)
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

async function isFree(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const free = await once(socket, 'connect').then(
    () => false,
    () => true,
  )
  socket.destroy()
  return free
}
