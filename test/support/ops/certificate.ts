/** A server of TLS on the loopback address whose certificate a test chooses, made by the machine's `openssl`. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'

export type TlsServer = Awaited<ReturnType<typeof startTlsServer>>

/** The server answers nothing: clients see its certificate when they connect. */
export async function startTlsServer(until: Date) {
  const server = createServer(await selfSigned(until), (socket) => void socket.on('error', () => {}))
  server.on('tlsClientError', () => {})
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    /** Presents a self-signed certificate that is valid until that day, to connections from now on. */
    present: async (day: Date) => server.setSecureContext(await selfSigned(day)),
    close: () => new Promise<void>((done) => void server.close(() => done())),
  }
}

const settings = `[ca]
default_ca = own
[own]
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
[any]
commonName = supplied
`

/** The certificate lasts one year, so that an expired one is possible. */
export async function selfSigned(until: Date): Promise<{ key: string; cert: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'grandlivre-certificate-'))
  const openssl = (...words: string[]) => execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' })
  const day = (date: Date) => `${date.toISOString().replaceAll(/[-:T]|\.\d+/g, '')}`
  const since = new Date(until.getTime() - 365 * 86_400_000)
  try {
    await writeFile(join(folder, 'ca.cnf'), settings)
    await writeFile(join(folder, 'index.txt'), '')
    openssl(
      ...['req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
      ...['-keyout', 'key.pem', '-subj', '/CN=localhost', '-out', 'request.pem'],
    )
    openssl(
      ...['ca', '-batch', '-config', 'ca.cnf', '-selfsign', '-keyfile', 'key.pem', '-in', 'request.pem'],
      ...['-startdate', day(since), '-enddate', day(until), '-notext', '-out', 'certificate.pem'],
    )
    return {
      key: await readFile(join(folder, 'key.pem'), 'utf8'),
      cert: await readFile(join(folder, 'certificate.pem'), 'utf8'),
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
