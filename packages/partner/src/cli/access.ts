/**
 * Finds how a partner reaches its ledger: the address, token and secret, either from the environment or from the file
 * that `grandlivre login` writes.
 *
 * The two sources are never mixed, so that a token of the file never goes to an address of the environment.
 */

import { readFileSync, statSync } from 'node:fs'
import { chmod, mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Kind } from '../../../terminal/src/command.ts'
import { GrandlivreError } from '../client/errors.ts'
import type { RequestsOptions } from '../client/requests.ts'
import { localFailure } from './exit-codes.ts'

/** How to reach a ledger. The society, the id of a folder, is needed with a firm token. */
export type Access = Pick<RequestsOptions, 'baseUrl' | 'token' | 'secret' | 'society'>

/** An access and its source: `environment`, or the path of the login file. */
export interface FoundAccess extends Access {
  from: string
}

/**
 * The profile that is used without `--profile`. Its access lies outside `profiles` in the login file, where older
 * versions read it.
 */
export const defaultProfile = 'default'

/** Letters, digits, - and _ only, so that a profile needs no quotes in a shell. */
const profilePattern = /^[A-Za-z0-9_-]{1,64}$/

export const profileKind: Kind<string> = {
  takes: 'letters, digits, - and _, at most 64',
  read: (text) => (profilePattern.test(text) ? text : undefined),
}

type Environment = Record<string, string | undefined>

const variables = ['GRANDLIVRE_URL', 'GRANDLIVRE_TOKEN', 'GRANDLIVRE_SECRET'] as const
const filePermissions = 0o600
const folderPermissions = 0o700
const lockPollMs = 20
/** A lock older than this was left by a killed process: a change takes milliseconds. */
const lockLeftMs = 5_000
/** Permission bits that let the group or others read or write. */
const permissionsOfOthers = 0o066

const wayIn = 'Run grandlivre login, or set GRANDLIVRE_URL, GRANDLIVRE_TOKEN and GRANDLIVRE_SECRET.'

export function loginFile(env: Environment): string {
  return join(
    env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config'),
    'grandlivre',
    'access.json',
  )
}

/** @returns the names of the variables in the environment that take precedence over the login file */
export function variablesSet(env: Environment): string[] {
  return variables.filter((name) => env[name])
}

/**
 * @param society takes precedence over the society of the environment and the file
 * @param profile of the login file. If given, it takes precedence over the environment; the society is then that of the
 *   profile, or none
 * @throws {Failure} if the access is missing or incomplete, or if others can read the login file
 */
export function findAccess(env: Environment, society?: string, profile?: string): FoundAccess {
  const set = profile === undefined ? variablesSet(env) : []
  const found = set.length > 0 ? fromEnvironment(env, set) : fromFile(loginFile(env), profile)
  const folder = society ?? ((profile === undefined && env['GRANDLIVRE_SOCIETY']) || found.society)
  return { ...found, society: folder }
}

function fromEnvironment(env: Environment, set: string[]): FoundAccess {
  const missing = variables.filter((name) => !env[name])
  if (missing.length > 0)
    throw localFailure(
      `${set.join(' and ')} ${set.length > 1 ? 'are' : 'is'} set, and ${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} not`,
      'Set all three, or none of them to use the login file.',
    )
  const [baseUrl, token, secret] = variables.map((name) => env[name]!) as [string, string, string]
  return { baseUrl, token, secret, from: 'environment' }
}

function fromFile(path: string, profile = defaultProfile): FoundAccess {
  const profiles = readProfiles(path)
  const access = profiles.get(profile)
  if (access) return { ...access, from: path }
  if (profiles.size === 0 && profile === defaultProfile)
    throw localFailure('There is no access to a ledger yet', wayIn)
  throw noProfile(path, profiles, profile)
}

function noProfile(path: string, profiles: Map<string, Access>, profile: string): Error {
  const login = `grandlivre login${profile === defaultProfile ? '' : ` --profile ${profile}`}`
  const known = profiles.size === 0 ? [] : [`It has: ${[...profiles.keys()].join(', ')}`]
  return localFailure(`${path} has no profile ${profile}`, [...known, `Run ${login} to make it.`])
}

/**
 * @returns the accesses of the login file by profile; empty if there is no file
 * @throws {Failure} if others can read the file, or if a profile is incomplete
 */
export function readProfiles(path: string): Map<string, Access> {
  let text: string
  try {
    const { mode } = statSync(path)
    // The file is read first: a folder in its place would otherwise be reported for its permissions.
    text = readFileSync(path, 'utf8')
    // Windows has no permissions of this kind.
    if (process.platform !== 'win32' && (mode & permissionsOfOthers) !== 0)
      throw localFailure(
        `Other users can read or write ${path}, which holds secrets`,
        `Run chmod 600 '${path}'.`,
      )
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT') return new Map()
    if (code === undefined) throw cause
    throw localFailure(
      `${path} cannot be read: ${message}`,
      'It is the file of grandlivre login: move what is there away, and log in again.',
      { cause },
    )
  }
  return profilesIn(text, path)
}

function profilesIn(text: string, path: string): Map<string, Access> {
  const remedy = `Remove it, and run grandlivre login again.`
  let found: Record<string, unknown> | null
  try {
    found = JSON.parse(text)
  } catch (cause) {
    throw localFailure(`${path} is not JSON`, remedy, { cause })
  }
  const { profiles: named, ...outer } = found ?? {}
  const all = Object.entries((named ?? {}) as Record<string, unknown>)
  if (named === undefined || Object.keys(outer).length > 0) all.unshift([defaultProfile, outer])
  return new Map(
    all.map(([profile, access]) => {
      const { baseUrl, token, secret, society } = (access ?? {}) as Partial<Record<keyof Access, unknown>>
      if (typeof baseUrl !== 'string' || typeof token !== 'string' || typeof secret !== 'string')
        throw localFailure(`${path} lacks baseUrl, token or secret of the profile ${profile}`, remedy)
      return [profile, { baseUrl, token, secret, society: typeof society === 'string' ? society : undefined }]
    }),
  )
}

/**
 * Writes a profile into the login file, which is replaced as a whole or left as it is. Only the user can read it.
 * @returns its path
 */
export function writeAccess(env: Environment, access: Access, profile = defaultProfile): Promise<string> {
  const { baseUrl, token, secret, society } = access
  return changeProfiles(env, (profiles) => profiles.set(profile, { baseUrl, token, secret, society }))
}

/**
 * Removes a profile. Removing the last one also removes the login file.
 * @returns its path
 * @throws {Failure} if there is no such profile
 */
export function removeAccess(env: Environment, profile: string): Promise<string> {
  return changeProfiles(env, (profiles, path) => {
    if (!profiles.delete(profile)) throw noProfile(path, profiles, profile)
  })
}

/**
 * Changes the login file under a lock, so that no process loses what another one writes. @returns the path of the file
 */
async function changeProfiles(
  env: Environment,
  change: (profiles: Map<string, Access>, path: string) => void,
): Promise<string> {
  const path = loginFile(env)
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: folderPermissions })
  await chmod(folder, folderPermissions)
  const lock = `${path}.lock`
  while (!(await takeLock(lock))) await delay(lockPollMs)
  try {
    const profiles = readProfiles(path)
    change(profiles, path)
    if (profiles.size > 0) await writeProfiles(path, profiles)
    else await rm(path)
  } finally {
    await rm(lock, { force: true })
  }
  return path
}

/** Tries to take the lock. Removes a lock that a killed process left. @returns false if there was a lock */
async function takeLock(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, '', { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const { mtimeMs } = (await stat(lock).catch(() => undefined)) ?? {}
    if (mtimeMs !== undefined && Math.abs(Date.now() - mtimeMs) > lockLeftMs) await rm(lock, { force: true })
    return false
  }
}

async function writeProfiles(path: string, profiles: Map<string, Access>): Promise<void> {
  const draft = `${path}.${process.pid}`
  const { [defaultProfile]: outer, ...named } = Object.fromEntries(profiles)
  const content = { ...outer, ...(Object.keys(named).length > 0 ? { profiles: named } : {}) }
  try {
    await writeFile(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: filePermissions, flag: 'wx' })
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

/**
 * Names an invalid setting as the user gave it: as an option, as a variable or in a file. @param from the source of the
 * access, as in FoundAccess
 */
export function inGivenWords(error: unknown, from?: string): unknown {
  if (!(error instanceof GrandlivreError) || error.code !== 'INVALID-OPTION') return error
  const [name = ''] = error.message.split(' ')
  const ofEnvironment = `GRANDLIVRE_${name.replace('baseUrl', 'url').toUpperCase()}`
  const given =
    from === undefined
      ? name.replace('baseUrl', '--url')
      : from === 'environment'
        ? ofEnvironment
        : `${name} in ${from}`
  return new GrandlivreError(error.code, error.message.replace(name, given), { cause: error })
}

/** Whether the service runs on this machine, where compression takes longer than it saves. */
export function isOnThisMachine(baseUrl: string): boolean {
  const { hostname } = new URL(baseUrl)
  return hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.')
}
