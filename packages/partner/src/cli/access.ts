/**
 * How a partner reaches its ledger: address, token and secret, from the environment or from the file that `grandlivre
 * login` writes.
 *
 * The two are never mixed, so that no token of the file goes to an address of the environment.
 */

import { readFileSync, statSync } from 'node:fs'
import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { Failure } from '../../../terminal/src/command-errors.ts'

export interface Access {
  /** `https://host`, without `/api/v1`. */
  baseUrl: string
  token: string
  secret: string
  /** The folder, for a firm token. */
  society?: string
}

/** An access, and where it comes from: `environment`, or the path of the login file. */
export interface FoundAccess extends Access {
  from: string
}

type Environment = Record<string, string | undefined>

const variables = ['GRANDLIVRE_URL', 'GRANDLIVRE_TOKEN', 'GRANDLIVRE_SECRET'] as const
const filePermissions = 0o600
const folderPermissions = 0o700
/** Group and others, reading and writing. */
const permissionsOfOthers = 0o066

const wayIn = 'Run grandlivre login, or set GRANDLIVRE_URL, GRANDLIVRE_TOKEN and GRANDLIVRE_SECRET.'

export function loginFile(env: Environment): string {
  return join(
    env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config'),
    'grandlivre',
    'access.json',
  )
}

/** @returns the variables of the environment that win over the login file */
export function variablesSet(env: Environment): string[] {
  return variables.filter((name) => env[name])
}

/**
 * @param society wins over the society of environment and file
 * @throws {Failure} if there is no whole access, or others can read the login file
 */
export function findAccess(env: Environment, society?: string): FoundAccess {
  const set = variablesSet(env)
  const found = set.length > 0 ? fromEnvironment(env, set) : fromFile(loginFile(env))
  const folder = society ?? (env['GRANDLIVRE_SOCIETY'] || found.society)
  return { ...found, ...(folder === undefined ? {} : { society: folder }) }
}

function fromEnvironment(env: Environment, set: string[]): FoundAccess {
  const missing = variables.filter((name) => !env[name])
  if (missing.length > 0)
    throw new Failure(
      `${set.join(' and ')} ${set.length > 1 ? 'are' : 'is'} set, and ${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} not`,
      'Set all three, or none of them to use the login file.',
    )
  const [baseUrl, token, secret] = variables.map((name) => env[name]!) as [string, string, string]
  return { baseUrl, token, secret, from: 'environment' }
}

function fromFile(path: string): FoundAccess {
  let text: string
  try {
    const { mode } = statSync(path)
    // Windows has no such permissions.
    if (process.platform !== 'win32' && (mode & permissionsOfOthers) !== 0)
      throw new Failure(
        `Other users can read or write ${path}, which holds secrets`,
        `Run chmod 600 '${path}'.`,
      )
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new Failure('There is no access to a ledger yet', wayIn)
  }
  return { ...accessIn(text, path), from: path }
}

function accessIn(text: string, path: string): Access {
  const again = `Run grandlivre login, which writes ${path} anew.`
  let found: Partial<Record<keyof Access, unknown>>
  try {
    found = JSON.parse(text)
  } catch (cause) {
    throw new Failure(`${path} is not JSON`, again, { cause })
  }
  const { baseUrl, token, secret, society } = found ?? {}
  if (typeof baseUrl !== 'string' || typeof token !== 'string' || typeof secret !== 'string')
    throw new Failure(`${path} lacks baseUrl, token or secret`, again)
  return { baseUrl, token, secret, ...(typeof society === 'string' ? { society } : {}) }
}

/** Replaces the login file, whole or not at all. Only the user can read it. @returns its path */
export async function writeAccess(
  env: Environment,
  { baseUrl, token, secret, society }: Access,
): Promise<string> {
  const path = loginFile(env)
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: folderPermissions })
  await chmod(folder, folderPermissions)
  const draft = `${path}.${process.pid}`
  const content = { baseUrl, token, secret, ...(society === undefined ? {} : { society }) }
  try {
    await writeFile(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: filePermissions, flag: 'wx' })
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
  return path
}

/** @returns the path of the login file, and whether there was one */
export async function removeAccess(env: Environment): Promise<{ path: string; wasThere: boolean }> {
  const path = loginFile(env)
  try {
    await rm(path)
    return { path, wasThere: true }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return { path, wasThere: false }
  }
}

/** Compression takes longer than it saves where nothing crosses a network. */
export function isOnThisMachine(baseUrl: string): boolean {
  const { hostname } = new URL(baseUrl)
  return hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.')
}
