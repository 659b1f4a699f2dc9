/**
 * `grandlivre sync` keeps copies of all ledgers of a firm in one database. `verify` proves the rows of a copy, and
 * repairs those that differ.
 */
import { countText } from '../../../../terminal/src/amounts.ts'
import { command } from '../../../../terminal/src/command.ts'
import { Failure } from '../../../../terminal/src/command-errors.ts'
import type { Run, SyncEvent } from '../../sync/events.ts'
import { followLedgers, syncCopy, verifyCopy } from '../../sync/sync.ts'
import type { CommandCall } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { copyOptions, eachRun, type ProfileRun, printTotal, withCopies, withProfileName } from './copies.ts'

export const sync = command({
  name: 'sync',
  summary: 'keep the ledgers of a firm in SQLite or PostgreSQL',
  about: `Copies ledgers into one database: all folders of a firm with the token of the
firm, or one folder with its own token. The first run reads everything; later
runs read what changed. Each ledger is replaced in one transaction. After an
interruption or a kill the same command goes on with the ledgers that are
missing.

Copies:
  <file>.sqlite            one file (or .sqlite3, .db). Needs Node 22.13
  postgres://...           the schema grandlivre_ledger of a database, or with
                           ?schema=<name> another one. Needs the package pg. Its
                           password is in PGPASSWORD or ~/.pgpass
Tables and views: <address of the service>/docs/guides/sql.html`,
  options: {
    ...copyOptions,
    follow: { help: 'go on: wait for changes and copy each at once, until Ctrl-C' },
    again: { help: 'read every ledger in full; rebuilds a copy of an older version' },
  },
  examples: [
    'grandlivre sync --to firm.sqlite',
    'sqlite3 firm.sqlite "select * from account_balances limit 10"',
    'grandlivre sync --to firm.sqlite --profile north --profile south',
    'grandlivre sync --to postgres://me@localhost/books --follow',
  ],
  run: (call: CommandCall, given) => {
    const [again, isFollowing] = [given.again === true, given.follow === true]
    return withCopies(call, given, { again, isFollowing }, async (runs) => {
      await copyAll(call, runs, again, isFollowing)
      if (!isFollowing) return
      call.terminal.note('Following the ledgers. Ctrl-C stops.')
      await followAll(runs)
      call.terminal.note('Stopped. The same command goes on from here.')
    })
  },
})

async function copyAll(
  call: CommandCall,
  runs: ProfileRun[],
  again: boolean,
  isFollowing: boolean,
): Promise<void> {
  const started = performance.now()
  const codes = new Set<string>()
  const { results, error } = await eachRun(call, runs, (run) => {
    const onEvent = (event: SyncEvent) => {
      if (event.kind === 'failed') codes.add(event.code)
      run.onEvent?.(event)
    }
    return syncCopy({ ...run, onEvent }, { again })
  })
  const ledgers = sumOf(results.map((done) => done.ledgers))
  const copied = sumOf(results.map((done) => done.copied))
  const rows = sumOf(results.map((done) => done.rows))
  const failed = results.flatMap((done) => done.failed)
  // Ledgers that were up to date before this run: an earlier run copied them, and they have not changed since.
  const before = ledgers - copied - failed.length
  const total = { ledgers, copied, rows, before, failed }
  const text = `${countText(copied)} of ${countText(ledgers)} ledgers copied, ${countText(rows)} movements`
  printTotal(call, runs, total, `${text}; ${countText(before)} were level before this run`, started)
  if (error) throw error
  if (failed.length === 0 || isFollowing) return
  const others = failed.length < ledgers ? 'The other ledgers are there. ' : ''
  const isUnknown = [...codes].every((code) => code === 'ERR-FOLDER-NOT-FOUND')
  throw new Failure(
    `Not copied: ${failed.join(', ')}`,
    `${others}${isUnknown ? 'grandlivre folders lists those that the access opens.' : 'The next run asks for these last.'}`,
    { exitCode: isUnknown ? exitCodes.refused : exitCodes.failed },
  )
}

const sumOf = (counts: number[]) => counts.reduce((sum, count) => sum + count, 0)

/** Follows all profiles until the first one fails. */
async function followAll(runs: ProfileRun[]): Promise<void> {
  const stop = new AbortController()
  const ends = runs.map(async (run) => {
    try {
      await withProfileName(
        run,
        followLedgers({ ...run, signal: AbortSignal.any([run.signal!, stop.signal]) }),
      )
    } finally {
      stop.abort()
    }
  })
  for (const end of await Promise.allSettled(ends)) if (end.status === 'rejected') throw end.reason
}

export const verify = command({
  name: 'verify',
  summary: 'prove every row of a copy, and mend what differs',
  about: `Brings the copy up to date, rebuilds the lines of all its rows, and compares
their digests with those that the service computes of its ledgers. What differs
is named and read again. The notes of the copy itself are not proven: firm,
cursor and times in the table folders, and the table changes.

Exit codes. 0: no row differed. 3: rows differed, and are those of the ledgers
now. 1: rows differ (--no-repair), or a folder of the copy could not be proven.
Without --society, that includes each folder that no given access opens.`,
  options: { ...copyOptions, 'no-repair': { help: 'only report what differs' } },
  examples: ['grandlivre verify --to firm.sqlite'],
  run: (call: CommandCall, given) =>
    withCopies(call, given, { isThere: true }, (runs) => verifyAll(call, runs, given['no-repair'] !== true)),
})

async function verifyAll(call: CommandCall, runs: Run[], repair: boolean): Promise<void> {
  const started = performance.now()
  const { results: all, error } = await eachRun(call, runs, (run) => verifyCopy(run, { repair }))
  const [first, ...others] = all.map((each) => [...each.unproven, ...each.uncovered])
  const unproven = first!.filter((society) => others.every((each) => each.includes(society)))
  for (const society of unproven)
    if (all.every(({ uncovered }) => uncovered.includes(society)))
      runs[0]!.onEvent?.({ kind: 'unproven', society, reason: 'no access that was given opens it' })
  const proven = sumOf(all.map((each) => each.proven))
  const rows = sumOf(all.map((each) => each.rows))
  const differed = all.flatMap((each) => each.differed)
  const text = `${countText(proven)} ledgers with ${countText(rows)} movements are equal`
  printTotal(call, runs, { proven, rows, differed, unproven }, text, started)
  if (error) throw error
  if (unproven.length > 0) throw new Failure(`Not proven: ${unproven.join(', ')}`)
  if (differed.length === 0) return
  const societies = differed.join(', ')
  if (!repair) throw new Failure(`Different: ${societies}`, 'Without --no-repair they are read again.')
  const exitCode = exitCodes.differs
  throw new Failure(`Different, and read again: ${societies}`, 'They are equal now.', { exitCode })
}
