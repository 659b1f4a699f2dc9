/** `grandlivre sync`: keeps copies of all ledgers of a firm in one database. */
import { countText, secondsText } from '../../../../terminal/src/amounts.ts'
import { command } from '../../../../terminal/src/command.ts'
import { Failure } from '../../../../terminal/src/command-errors.ts'
import type { SyncEvent } from '../../sync/events.ts'
import { followLedgers, syncCopy } from '../../sync/sync.ts'
import type { Call } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { copyOptions, eachRun, type Given, named, type ProfileRun, withCopies } from './copies.ts'

export const sync = command({
  name: 'sync',
  summary: 'keep the ledgers of a firm in SQLite or PostgreSQL',
  about: `Copies ledgers into one database: with the token of a firm all its folders, with
the token of a folder that one. The first run reads everything, later ones what
changed. Each ledger is replaced in one transaction. After an interruption or a
kill the same command goes on with the ledgers that are missing.

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
  run: (call: Call, given) => {
    const [again, isFollowing] = [given.again === true, given.follow === true]
    return withCopies(call, given satisfies Given, { again, isFollowing }, async (runs) => {
      await copyAll(call, runs, again, isFollowing)
      if (!isFollowing) return
      call.terminal.note('Following the ledgers. Ctrl-C stops.')
      await followAll(runs)
      call.terminal.note('Stopped. The same command goes on from here.')
    })
  },
})

async function copyAll(call: Call, runs: ProfileRun[], again: boolean, isFollowing: boolean): Promise<void> {
  const { terminal, json } = call
  const started = performance.now()
  const total = { ledgers: 0, copied: 0, rows: 0, before: 0, failed: [] as string[] }
  const codes = new Set<string>()
  const { results, error } = await eachRun(call, runs, (run) => {
    const onEvent = (event: SyncEvent) => {
      if (event.kind === 'failed') codes.add(event.code)
      run.onEvent?.(event)
    }
    return syncCopy({ ...run, onEvent }, { again })
  })
  for (const done of results) {
    total.ledgers += done.ledgers
    total.copied += done.copied
    total.rows += done.rows
    total.failed.push(...done.failed)
  }
  // Level before: by an earlier run, which may have been cut off, or unchanged since.
  total.before = total.ledgers - total.copied - total.failed.length
  const { name } = runs[0]!.copy
  const seconds = performance.now() - started
  if (json) terminal.json({ time: new Date().toISOString(), kind: 'done', copy: name, ...total })
  else
    terminal.print(
      `${name}: ${countText(total.copied)} of ${countText(total.ledgers)} ledgers copied, ${countText(total.rows)} movements; ${countText(total.before)} were level before this run; ${secondsText(seconds)}`,
    )
  if (error) throw error
  if (total.failed.length === 0 || isFollowing) return
  const others = total.failed.length < total.ledgers ? 'The other ledgers are there. ' : ''
  const isUnknown = [...codes].every((code) => code === 'ERR-FOLDER-NOT-FOUND')
  throw new Failure(
    `Not copied: ${total.failed.join(', ')}`,
    `${others}${isUnknown ? 'grandlivre folders lists those that the access opens.' : 'The next run asks for these last.'}`,
    { exitCode: isUnknown ? exitCodes.refused : exitCodes.failed },
  )
}

/** Ends with the first that fails. */
async function followAll(runs: ProfileRun[]): Promise<void> {
  const stop = new AbortController()
  const ends = runs.map(async (run) => {
    try {
      await named(run, followLedgers({ ...run, signal: AbortSignal.any([run.signal!, stop.signal]) }))
    } finally {
      stop.abort()
    }
  })
  for (const end of await Promise.allSettled(ends)) if (end.status === 'rejected') throw end.reason
}
