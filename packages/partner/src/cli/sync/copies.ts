/** Finds the ledgers and the copy that `sync` and `verify` work on, and prints the results of a run. */
import { countText, secondsText } from '../../../../terminal/src/amounts.ts'
import type { Given } from '../../../../terminal/src/command.ts'
import { Failure, UsageError } from '../../../../terminal/src/command-errors.ts'
import type { EntryRange } from '../../client/changes.ts'
import type { Copy, OpenOptions } from '../../sync/copy.ts'
import type { Run, SyncEvent } from '../../sync/events.ts'
import { openCopy } from '../../sync/sync.ts'
import { findAccess, isOnThisMachine, profileKind } from '../access.ts'
import type { CommandCall } from '../command.ts'
import type { OfProfile } from '../exit-codes.ts'

export const copyOptions = {
  to: { value: 'copy', required: true, help: '<file>.sqlite or postgres://user@host/database' },
  society: { value: 'id', several: true, help: 'only these folders' },
  profile: {
    value: 'name',
    is: profileKind,
    several: true,
    help: 'accesses that login --profile kept: their firms share the copy',
  },
} as const

type CopyGiven = Given<unknown, typeof copyOptions>

/**
 * Opens the copy that `--to` names.
 * @throws {UsageError} if it contains a password, which other users of this machine could see
 */
export function openAt(to: string, options: OpenOptions): Promise<Copy> {
  const address = URL.canParse(to) ? new URL(to) : undefined
  // A connection string such as host=... password=... is no URL, but may contain a password, too.
  if (address?.password || address?.searchParams.has('password') || /password\s*=/i.test(to))
    throw new UsageError('--to holds a password, which other users of this machine can see', [
      'Leave it out, and set PGPASSWORD, or write it to ~/.pgpass, which only you can read.',
    ])
  return openCopy(to, options)
}

/** A run, with the name of its profile if several profiles were given. */
export type ProfileRun = Run & OfProfile

/**
 * Opens one connection to the copy for each access, because the firms have separate transactions, and closes all at the
 * end.
 * @throws {UsageError} for options that cannot be combined
 */
export async function withCopies(
  call: CommandCall,
  given: CopyGiven,
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

/** Adds the name of the profile to an error of its work. */
export async function withProfileName<Result>(
  { profile }: ProfileRun,
  work: Promise<Result>,
): Promise<Result> {
  return work.catch((error: Error) => {
    throw profile === undefined ? error : Object.assign(error, { profile })
  })
}

/**
 * Does the work of one access after the other. If one fails, the rest still run.
 * @returns the results of those that succeeded, and the first error, with which the command ends. Later errors are
 *   printed
 */
export async function eachRun<Result>(
  { printError, signal }: CommandCall,
  runs: readonly ProfileRun[],
  work: (run: Run) => Promise<Result>,
): Promise<{ results: Result[]; error: unknown }> {
  const results: Result[] = []
  const errors: unknown[] = []
  for (const run of runs)
    try {
      results.push(await withProfileName(run, work(run)))
    } catch (error) {
      if (signal.aborted) throw new Failure('Interrupted', 'The same command goes on from here.')
      if (errors.push(error) > 1) printError(error)
    }
  if (results.length === 0) throw errors[0]
  return { results, error: errors[0] }
}

/** Prints the end of a run: its totals as an object with --json, otherwise a line about them. */
export function printTotal(
  { terminal, json }: CommandCall,
  runs: readonly Run[],
  total: object,
  text: string,
  started: number,
): void {
  const { name } = runs[0]!.copy
  if (json) terminal.json({ time: new Date().toISOString(), kind: 'done', copy: name, ...total })
  else terminal.print(`${name}: ${text}; ${secondsText(performance.now() - started)}`)
}

/** Most ranges of entries that a line lists. The others are only counted. */
const shownMax = 5

/** @param isFollowing prints a result for each ledger as soon as it is copied */
function reportOf({ terminal, json }: CommandCall, isFollowing: boolean) {
  let total = { differing: 0, done: 0, rows: 0 }
  return (event: SyncEvent) => {
    if (event.kind === 'listed') total = { differing: event.differing, done: 0, rows: 0 }
    if (event.kind === 'rows') total.rows += event.rows
    if (event.kind === 'copied' || event.kind === 'failed') total.done += 1
    if (json && !['listed', 'rows', 'compared'].includes(event.kind))
      return terminal.json({ time: new Date().toISOString(), ...event })
    switch (event.kind) {
      case 'listed':
      case 'rows': {
        const ledgers = `${countText(total.done)} of ${countText(total.differing)} ledgers`
        const text = `${ledgers}, ${countText(total.rows)} rows`
        return total.differing > 0 ? terminal.progress(text, total.done / total.differing) : undefined
      }
      case 'compared':
        return terminal.progress(`Comparing ${event.society}: ${countText(event.rows)} movements are equal`)
      case 'waiting':
        return terminal.note(`${event.reason}; asking again in ${secondsText(event.ms)}`)
      case 'copied':
        if (isFollowing) terminal.print(`${event.at}  ${event.society} ${event.name}: ${changeText(event)}`)
        return
      case 'gone':
        return terminal.note(
          `${event.society}: no longer among the folders of its firm. Its rows stay in the tables, and leave the views`,
        )
      case 'back':
        return terminal.note(`${event.society}: among the folders of its firm again`)
      case 'failed':
        return terminal.warn(`${event.society}: ${event.message} (${event.code}). Its rows stay as they are`)
      case 'stray':
        return terminal.warn(`${event.society}: the copy has rows of this folder, and does not list it`)
      case 'unproven':
        return terminal.warn(`${event.society}: not proven: ${event.reason}`)
      case 'differs': {
        const parts: string[] = [...event.tables]
        if (event.entries.length > 0) parts.push(`movements of the entries ${rangesText(event.entries)}`)
        return terminal.warn(`${event.society} differs: ${parts.join(', ')}`)
      }
    }
  }
}

function changeText(event: Extract<SyncEvent, { kind: 'copied' }>): string {
  const { since, entries, rows_before, rows_after, ms } = event
  const took = secondsText(ms)
  if (since === null) return `copied in full, ${countText(rows_after)} movements; ${took}`
  if (entries.length === 0) return `no movements changed; ${took}`
  return `${countText(rows_before)} movements replaced by ${countText(rows_after)}, entries ${rangesText(entries)}; ${took}`
}

function rangesText(ranges: readonly EntryRange[]): string {
  const shown = ranges.slice(0, shownMax).map(([from, to]) => (from === to ? from : `${from} to ${to}`))
  const more = ranges.length - shown.length
  return `${shown.join(', ')}${more > 0 ? ` and ${countText(more)} more ranges` : ''}`
}
