/** Which ledgers `sync` and `verify` are about, and where their copy is. */
import { Failure, UsageError } from '../../../../terminal/src/command-errors.ts'
import type { Copy, OpenOptions } from '../../sync/copy.ts'
import type { Run } from '../../sync/events.ts'
import { openCopy } from '../../sync/sync.ts'
import { findAccess, isOnThisMachine, profileKind } from '../access.ts'
import type { Call } from '../command.ts'
import type { OfProfile } from '../exit-codes.ts'
import { reportOf } from './report.ts'

export const copyOptions = {
  to: { value: 'copy', required: true, help: '<file>.sqlite or postgres://user@host/database' },
  society: { value: 'id', several: true, help: 'only this folder, or these' },
  profile: {
    value: 'name',
    is: profileKind,
    several: true,
    help: 'accesses that login --profile kept: their firms share the copy',
  },
} as const

export interface Given {
  to: string
  society?: string[]
  profile?: string[]
}

/**
 * Opens the copy that `--to` names.
 * @throws {UsageError} for a password, which other users of this machine could see
 */
export function openAt(to: string, options: OpenOptions): Promise<Copy> {
  const address = URL.canParse(to) ? new URL(to) : undefined
  // Also host=... password=..., which is no address.
  if (address?.password || address?.searchParams.has('password') || /password\s*=/i.test(to))
    throw new UsageError('--to holds a password, which other users of this machine can see', [
      'Leave it out, and set PGPASSWORD, or write it to ~/.pgpass, which only you can read.',
    ])
  return openCopy(to, options)
}

/** A run, and its profile where there are several. */
export type ProfileRun = Run & OfProfile

/**
 * Opens the copy once for each access, because each firm has transactions of its own, and closes all at the end.
 * @throws {UsageError} for options that do not go together
 */
export async function withCopies(
  call: Call,
  given: Given,
  options: OpenOptions & { isFollowing?: boolean },
  work: (runs: ProfileRun[]) => Promise<void>,
): Promise<void> {
  const { to, society, profile = [undefined] } = given
  if (society && profile.length > 1)
    throw new UsageError('--society chooses folders of one access: give it with one --profile')
  for (const option of ['society', 'profile'] as const) {
    const double = given[option]?.find((value, at, values) => values.indexOf(value) < at)
    if (double !== undefined) throw new UsageError(`--${option} ${double} is given twice`)
  }
  const runs: ProfileRun[] = []
  const locked = new Set<string>()
  try {
    for (const name of profile) {
      const { society: usual, ...access } = findAccess(call.env, undefined, name)
      const copy = await openAt(to, { ...options, locked, signal: call.signal })
      runs.push({
        ...(profile.length > 1 && name !== undefined ? { profile: name } : {}),
        copy,
        ledger: call.library(access),
        societies: society ?? (usual === undefined ? undefined : [usual]),
        encoding: isOnThisMachine(access.baseUrl) ? 'identity' : undefined,
        signal: call.signal,
        onEvent: reportOf(call, options.isFollowing === true),
      })
    }
    await work(runs)
  } finally {
    for (const { ledger } of runs) ledger.close()
    await Promise.allSettled(runs.map(({ copy }) => copy.close()))
  }
}

/** An error of the work names the profile. */
export async function named<Result>({ profile }: ProfileRun, work: Promise<Result>): Promise<Result> {
  return work.catch((error: Error) => {
    throw profile === undefined ? error : Object.assign(error, { profile })
  })
}

/**
 * Runs one access after the other. The failure of one does not stop the rest.
 * @returns the results of those that succeeded, and the first error, with which the command ends. Later errors are printed
 */
export async function eachRun<Result>(
  { tell, signal }: Call,
  runs: readonly ProfileRun[],
  work: (run: Run) => Promise<Result>,
): Promise<{ results: Result[]; error: unknown }> {
  const results: Result[] = []
  const errors: unknown[] = []
  for (const run of runs)
    try {
      results.push(await named(run, work(run)))
    } catch (error) {
      if (signal.aborted) throw new Failure('Interrupted', 'The same command goes on from here.')
      if (errors.push(error) > 1) tell(error)
    }
  if (results.length === 0) throw errors[0]
  return { results, error: errors[0] }
}
