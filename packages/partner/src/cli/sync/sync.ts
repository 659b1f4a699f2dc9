/** `grandlivre sync`: keeps a copy of a folder's ledger in a database or a file. */

import { command, type Given } from '../../../../terminal/src/command.ts'
import { Failure } from '../../../../terminal/src/command-errors.ts'
import type { Call } from '../command.ts'
import { bringUpToDate, type Step, stepText } from './bring-up-to-date.ts'
import { follow } from './follow.ts'
import { openCopy } from './open-copy.ts'

const options = {
  to: { value: 'target', required: true, help: 'where the copy is' },
  follow: { help: 'go on: wait for changes and copy each at once, until Ctrl-C' },
  exercice: { value: 'id or year', help: 'only this exercice' },
  again: { help: 'read everything again, then replace the copy' },
} as const

export const sync = command({
  name: 'sync',
  summary: 'keep a copy of the ledger in SQLite, PostgreSQL or a file',
  about: `Copies the ledger of a folder: validated entries and drafts of all exercices,
accounts and journals. The first run reads everything, later ones what changed.
Each run ends with a copy of one state of the ledger. After an interruption or a
kill the same command goes on where it stopped.

Targets:
  <file>.sqlite            one file (or .sqlite3, .db). Needs Node 22.13
  <file>.ndjson            one movement as JSON on each line
  postgres://...           the schema grandlivre_ledger of a database, or with
                           ?schema=<name> another one. Needs the package pg
The tables and views are described in docs/guides/sql.md.`,
  options,
  examples: [
    'grandlivre sync --to ledger.sqlite',
    'sqlite3 ledger.sqlite "select * from account_balances limit 10"',
    'grandlivre sync --to postgres://me:secret@localhost/books --follow',
  ],
  run: runSync,
})

async function runSync(call: Call, given: Given<unknown, typeof options>): Promise<void> {
  const { terminal, signal, json } = call
  const { folder, target } = await openCopy(call, given)
  const copying = { folder, target, terminal }
  const report = (step: Step) => {
    if (json) return terminal.json({ at: new Date().toISOString(), target: target.name, ...step })
    terminal.print(`${new Date().toISOString()}  ${stepText(step)}`)
  }
  try {
    const copy = await target.state('copy')
    const isAgain = given.again === true && copy !== undefined
    const first = await bringUpToDate(copying, isAgain ? undefined : copy).catch((error: unknown) => {
      if (signal.aborted) throw new Failure('Interrupted', 'The same command goes on from here.')
      throw error
    })
    report(first)
    if ((await target.state('copy'))?.extended === false)
      terminal.note(
        'ecriture_num, piece_date, auxiliary_number and auxiliary_name are empty: the service is older than they are. Once it gives them, run sync --again.',
      )
    if (!given.follow) return
    terminal.note('Following the ledger. Ctrl-C stops.')
    await follow(copying, report)
    terminal.note('Stopped. The same command goes on from here.')
  } finally {
    await target.close()
  }
}
