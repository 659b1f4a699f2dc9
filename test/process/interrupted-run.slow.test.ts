/** An interrupted run of the tests leaves neither servers nor files. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'vitest'
import { until } from '../support/until.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))

/** Each case has its own temporary folder, so the cases run side by side. */
test.concurrent.each([
  ['Ctrl-C, which reaches the whole group of the terminal', 'SIGINT', 'group'],
  ['SIGTERM', 'SIGTERM', 'process'],
  ['SIGKILL', 'SIGKILL', 'process'],
] as const)('after %s no server or file is left', { timeout: 180_000 }, async (_, signal, whom) => {
  const temporary = await mkdtemp(join(tmpdir(), 'grandlivre-interrupted-'))
  await chmod(temporary, 0o755)
  // These tests start their own server, besides the server of the run.
  const run = spawn(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', '--project', 'slow', 'test/db/database.slow.test.ts'],
    { cwd: project, env: { PATH: process.env['PATH'], TMPDIR: temporary }, detached: true, stdio: 'ignore' },
  )
  try {
    await until(async () => (await servers(temporary)).length >= 2)
    const started = await servers(temporary)
    process.kill(whom === 'group' ? -run.pid! : run.pid!, signal)
    await once(run, 'close')
    await until(async () => (await readdir(temporary)).length === 0)
    for (const { port } of started) await until(() => isFree(port))
  } finally {
    // Kills the run first, if it still runs: it could start more servers. It is detached, so its whole group is killed.
    kill(-run.pid!)
    for (const { pid } of await servers(temporary)) kill(pid)
    await rm(temporary, { recursive: true, force: true })
  }
})

/** The PostgreSQL servers that were started below the temporary folder: process id on line 1, port on line 4. */
async function servers(temporary: string): Promise<{ pid: number; port: number }[]> {
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
