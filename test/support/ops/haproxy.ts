/** HAProxy with the file of `ops/haproxy/`, in front of two processes, with a certificate of its own. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePort } from '../servers/pgbouncer.ts'
import { until } from '../until.ts'
import { selfSigned } from './certificate.ts'

const file = resolve(import.meta.dirname, '../../../ops/haproxy/haproxy.cfg')
/** Debian installs it outside the PATH of ordinary users. */
const PATH = `${process.env['PATH']}:/usr/sbin`

export const isHaproxyInstalled = (() => {
  try {
    execFileSync('haproxy', ['-v'], { stdio: 'ignore', env: { PATH } })
    return true
  } catch {
    console.warn('No tests of ops/haproxy: HAProxy is not installed, see .ci/run')
    return false
  }
})()

export type Haproxy = Awaited<ReturnType<typeof startHaproxy>>

/** @param urls addresses of two services */
export async function startHaproxy(urls: readonly [string, string]) {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-haproxy-'))
  const { key, cert } = await selfSigned(new Date(Date.now() + 30 * 86_400_000))
  const certificate = join(folder, 'certificate.pem')
  await writeFile(certificate, cert + key)
  const port = await freePort()
  const [one, two] = urls.map((url) => new URL(url).host)
  const env = { PATH, BIND: `127.0.0.1:${port}`, CERTIFICATE: certificate, SERVICE1: one, SERVICE2: two }
  execFileSync('haproxy', ['-c', '-f', file], { env, stdio: 'pipe' })
  const child = spawn('haproxy', ['-db', '-f', file], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'close')
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (printed += text))
  const close = async () => {
    child.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true })
  }
  await until(async () => child.exitCode !== null || (await listens(port)))
  if (child.exitCode !== null) {
    await close()
    throw new Error(`HAProxy did not start: ${printed}`)
  }
  // Clients have to trust `ca`.
  return { url: `https://localhost:${port}`, ca: cert, close }
}

function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  }).finally(() => socket.destroy()) as Promise<boolean>
}
