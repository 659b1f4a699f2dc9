/** A folder for an embedded database, and other processes that use it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect } from 'vitest'
import { ask } from '../servers/database.ts'

export const project = fileURLToPath(new URL('../../..', import.meta.url))

export interface EmbeddedStage {
  /** The test's folder. */
  folder: string
  dataDir: string
  /** The test's cluster: in `dataDir`, unless PostgreSQL cannot access that. */
  clusterPath: string
  /** Processes that are killed at the end of the test if they still run. */
  children: ChildProcess[]
  /** Starts another process that uses the database of `dataDir`, as leader of its own group. */
  startProcess(options?: UserOptions): Promise<UserProcess>
  /** The pid of the server on the test's folder. */
  postmasterPid(): Promise<number | undefined>
}

/** A new stage for each test of the file; no test may leave a server running. */
export function setEmbeddedStage(): EmbeddedStage {
  const stage: EmbeddedStage = {
    folder: '',
    dataDir: '',
    clusterPath: '',
    children: [],
    startProcess: (options = {}) => startProcess(stage, options),
    postmasterPid: () => postmasterPid(stage.clusterPath),
  }

  beforeEach(async () => {
    stage.folder = await mkdtemp(join(tmpdir(), 'grandlivre-test-'))
    await chmod(stage.folder, 0o755)
    stage.dataDir = join(stage.folder, 'data')
    stage.clusterPath = join(stage.dataDir, 'postgres')
    stage.children = []
  })

  afterEach(async () => {
    // After a test that passed, nothing below is left to end.
    for (const child of stage.children) {
      child.kill('SIGKILL')
      await ended(child)
    }
    const left = await stage.postmasterPid()
    if (left !== undefined && isRunning(left)) process.kill(left, 'SIGKILL')
    await rm(stage.folder, { recursive: true, force: true })
    expect(left, 'no server is left running').toBeUndefined()
  })

  return stage
}

export interface UserProcess {
  child: ChildProcess
  ownerUrl: string
  serviceUrl: string
  leave(): Promise<void>
}

interface UserOptions {
  uid?: number
  gid?: number
  project?: string
  temporary?: string
  umask?: string
}

async function startProcess(
  { dataDir, children }: EmbeddedStage,
  options: UserOptions,
): Promise<UserProcess> {
  const { uid, gid, temporary = tmpdir(), umask = '022' } = options
  const program = join(options.project ?? project, 'test/support/servers/hold-database.ts')
  const child = spawn(
    '/bin/sh',
    ['-c', `umask ${umask}; exec "$0" "$@"`, process.execPath, program, dataDir],
    {
      ...(uid === undefined ? {} : { uid }),
      ...(gid === undefined ? {} : { gid }),
      cwd: '/',
      detached: true,
      env: { PATH: '/usr/bin:/bin', TMPDIR: temporary },
    },
  )
  children.push(child)
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk))
  for await (const line of createInterface({ input: child.stdout })) {
    const { ownerUrl, serviceUrl } = JSON.parse(line) as { ownerUrl: string; serviceUrl: string }
    const leave = async () => {
      child.stdin.end()
      await ended(child)
      expect(errors).toBe('')
    }
    return { child, ownerUrl, serviceUrl, leave }
  }
  throw new Error(errors)
}

export async function isRefused(url: string): Promise<boolean> {
  const error = await ask(url, 'select 1').catch((thrown: NodeJS.ErrnoException) => thrown)
  return 'code' in error && error.code === 'ECONNREFUSED'
}

/** How many processes keep the server running. One that has connected, and does not hold the lock yet, does not count. */
export async function holders(ownerUrl: string): Promise<number> {
  const rows = await ask(
    ownerUrl,
    `select count(*)::int as holders from pg_locks join pg_stat_activity using (pid)
     where application_name = 'grandlivre holder' and locktype = 'advisory' and granted`,
  )
  return Number(rows[0]?.['holders'])
}

export function portOf(url: string): string {
  return new URL(url).port
}

async function postmasterPid(clusterPath: string): Promise<number | undefined> {
  const text = await readFile(join(clusterPath, 'postmaster.pid'), 'utf8').catch(() => undefined)
  return text === undefined ? undefined : Number(text.split('\n')[0])
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

export async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
