/** Real S3 servers for the tests, on free ports of this machine. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, type SuiteOptions, test } from 'vitest'
import { until } from '../until.ts'
import { installedS3Programs, type S3ProgramName, s3ProgramPath } from './s3-programs.ts'

export interface S3Server {
  endpoint: string
  accessKey: string
  secretKey: string
  stop(): Promise<void>
}

const accessKey = 'grandlivre'
const secretKey = 'grandlivre-secret'

interface Launch {
  args: (folder: string, port: number, otherPort: number) => string[]
  env?: Record<string, string>
  prepare?: (folder: string) => Promise<void>
}

const launches: Record<S3ProgramName, Launch> = {
  minio: {
    args: (folder, port, other) => [
      'server',
      '--quiet',
      `--address=127.0.0.1:${port}`,
      `--console-address=127.0.0.1:${other}`,
      join(folder, 'files'),
    ],
    // Without the last one it refuses a folder on the system disk.
    env: {
      MINIO_ROOT_USER: accessKey,
      MINIO_ROOT_PASSWORD: secretKey,
      MINIO_BROWSER: 'off',
      MINIO_CI_CD: '1',
    },
  },
  versitygw: {
    args: (folder, port) => [
      '--quiet',
      `--port=127.0.0.1:${port}`,
      `--access=${accessKey}`,
      `--secret=${secretKey}`,
      'posix',
      // Attributes beside the files, because temporary folders cannot keep them everywhere.
      `--sidecar=${join(folder, 'attributes')}`,
      join(folder, 'files'),
    ],
    prepare: async (folder) => {
      await mkdir(join(folder, 'attributes'))
    },
  },
}

/**
 * Declares tests for each installed server.
 * @param tests their server runs when they do
 * @param options of vitest
 */
export function describeOnS3(tests: (server: () => S3Server) => void, options: SuiteOptions = {}): void {
  for (const name of installedS3Programs)
    describe(name, options, () => {
      let server: S3Server

      beforeAll(async () => {
        server = await startS3Server(name)
      })

      afterAll(() => server?.stop())

      tests(() => server)
    })
  // A file without any test would be a failure.
  if (installedS3Programs.length === 0) test.skip('on an S3 server', () => {})
}

/** A server whose port another process takes first ends; it is started again on other ports. */
export async function startS3Server(name: S3ProgramName): Promise<S3Server> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await startOnFreePorts(s3ProgramPath(name), launches[name])
    } catch (error) {
      if (tries === 3) throw error
    }
  }
}

async function startOnFreePorts(path: string, { args, env, prepare }: Launch): Promise<S3Server> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-s3-'))
  await mkdir(join(folder, 'files'))
  await prepare?.(folder)
  const [port, otherPort] = await freePorts(2)
  const child = spawn(path, args(folder, port!, otherPort!), {
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output = (output + chunk).slice(-4_000)
    })
  const endpoint = `http://127.0.0.1:${port}`
  let isUp = false
  await until(async () => {
    isUp = await answers(endpoint)
    return isUp || child.exitCode !== null
  })
  if (!isUp || child.exitCode !== null) {
    await stop(child, folder)
    throw new Error(`${path} ended at once: ${output}`)
  }
  return { endpoint, accessKey, secretKey, stop: () => stop(child, folder) }
}

/** Anything but 503, the status of a starting server: without credentials mostly a refusal. */
async function answers(endpoint: string): Promise<boolean> {
  try {
    return (await fetch(endpoint)).status < 500
  } catch {
    return false
  }
}

async function stop(child: ChildProcess, folder: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGKILL')
    await once(child, 'close')
  }
  await rm(folder, { recursive: true, force: true })
}

/** Opened together, so that none is returned twice. */
async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      return server
    }),
  )
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))))
  return ports
}
