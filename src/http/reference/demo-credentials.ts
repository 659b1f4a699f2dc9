/**
 * `credentials.json` in the data folder: what a first request to the demo folder needs. The reference page on the same
 * machine shows it, so that a newcomer need not look for it. It opens only a made-up ledger, but it does hold
 * credentials, so not every page may read it (`isOnOwnMachine`).
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { join } from 'node:path'
import type { Config } from '../../config.ts'

export interface Credentials {
  /** `http://127.0.0.1:8080` */
  baseUrl: string
  thirdPartySecret: string
  companyToken: string
  firmToken: string
  /** The folder; a firm token names it in the header society-id. */
  societyId: string
  /** Fiscal years, earliest first; days are `YYYY-MM-DD`. */
  exercices: { id: string; start: string; end: string }[]
}

/**
 * @returns a token of the demo folder alone, and the id of its latest fiscal year; undefined if there are none, or if this
 *   request may not have them
 */
export function readDemoCredentials(
  config: Pick<Config, 'host' | 'databaseUrl' | 'publicUrl' | 'dataDir'>,
  request: BrowserRequest,
) {
  // Only the embedded database has the demo folder; the file of an earlier run may still be there.
  if (config.databaseUrl !== undefined || !isOnOwnMachine(config, request)) return undefined
  const { companyToken, thirdPartySecret, exercices } = readCredentials(config.dataDir) ?? {}
  const idExercice = exercices?.at(-1)?.id
  if (companyToken === undefined || thirdPartySecret === undefined || idExercice === undefined)
    return undefined
  return { companyToken, thirdPartySecret, idExercice }
}

/** Writes the file so that only its owner can read it, and no reader sees a part of it. */
export function writeCredentials(dataDir: string, credentials: Credentials): void {
  const path = credentialsPath(dataDir)
  const draft = `${path}.${process.pid}`
  rmSync(draft, { force: true })
  writeFileSync(draft, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 })
  renameSync(draft, path)
}

export function credentialsPath(dataDir: string): string {
  return join(dataDir, 'credentials.json')
}

/** Reads the file. Returns undefined if it is missing or damaged. */
export function readCredentials(dataDir: string): Partial<Credentials> | undefined {
  try {
    return JSON.parse(readFileSync(credentialsPath(dataDir), 'utf8'))
  } catch (error) {
    // Missing or damaged: a new file is made.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

type BrowserRequest = Pick<IncomingMessage, 'headersDistinct'> & {
  socket: { remoteAddress?: string | undefined }
}

/**
 * Whether a request comes from a page of this service, in a browser on the machine of the service. Every way in which a
 * page or a machine elsewhere could read the answer is refused:
 *
 *   a service that others can reach       it must listen on a loopback address, and its public address, if set, is one
 *   a request from another machine        the connection must come from a loopback address
 *   a name that resolves to 127.0.0.1     `Host` must be a loopback name (DNS rebinding)
 *   a page of another site or port        `Sec-Fetch-Site` must be same-origin; no header of CORS is ever sent
 *   a proxy on this machine               none of its headers may be there; `Referer`, which proxies that replace `Host`
 *                                         leave alone, must name the same host
 *
 * Another user of this machine can ask like a browser (docs/operators.md).
 */
export function isOnOwnMachine(
  { host, publicUrl }: Pick<Config, 'host' | 'publicUrl'>,
  { headersDistinct, socket }: BrowserRequest,
): boolean {
  if (!isLoopback(host)) return false
  if (publicUrl !== undefined && !isLoopback(new URL(publicUrl).hostname)) return false
  if (!isLoopback(socket.remoteAddress ?? '')) return false
  const name = headersDistinct['host']?.join() ?? ''
  if (!isLoopback(hostNameOf(name))) return false
  if (headersDistinct['referer']?.join() !== `http://${name}/docs/api/`) return false
  if (headersDistinct['sec-fetch-site']?.join() !== 'same-origin') return false
  return !Object.keys(headersDistinct).some((name) =>
    /^(?:forwarded|via|x-forwarded-.*|x-real-ip)$/.test(name),
  )
}

/** `Host` without its port. */
function hostNameOf(host: string): string {
  return host.replace(/:\d*$/, '')
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/** @param name an address or a host name; IPv6 also in brackets */
function isLoopback(name: string): boolean {
  const bare = name.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  const version = isIP(bare)
  return version === 0 ? bare === 'localhost' : loopback.check(bare, version === 6 ? 'ipv6' : 'ipv4')
}
