/** `grandlivre verify`: proves the rows of a copy, and reads again what differs. */
import { countText, secondsText } from '../../../../terminal/src/amounts.ts'
import { command } from '../../../../terminal/src/command.ts'
import { Failure } from '../../../../terminal/src/command-errors.ts'
import type { Run } from '../../sync/events.ts'
import { verifyCopy } from '../../sync/sync.ts'
import type { Call } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { copyOptions, eachRun, withCopies } from './copies.ts'

export const verify = command({
  name: 'verify',
  summary: 'prove every row of a copy, and mend what differs',
  about: `Brings the copy up to date, makes the lines of all its rows again, and compares
their digests with those that the service computes of its ledgers. What differs
is named and read again. The notes of the copy itself are not proven: firm,
cursor and times in the table folders, and the table changes.

Exit codes. 0: no row differed. 3: rows differed, and are those of the ledgers
now. 1: rows differ (--no-repair), or a folder of the copy could not be proven:
also one that no access given opens, unless --society chooses others.`,
  options: { ...copyOptions, 'no-repair': { help: 'only tell what differs' } },
  examples: ['grandlivre verify --to firm.sqlite'],
  run: (call: Call, given) =>
    withCopies(call, given, { isThere: true }, (runs) => verifyAll(call, runs, given['no-repair'] !== true)),
})

async function verifyAll(call: Call, runs: Run[], repair: boolean): Promise<void> {
  const { terminal, json } = call
  const started = performance.now()
  const { results: all, error } = await eachRun(call, runs, (run) => verifyCopy(run, { repair }))
  const [first, ...others] = all.map((each) => [...each.unproven, ...each.uncovered])
  const unproven = first!.filter((society) => others.every((each) => each.includes(society)))
  for (const society of unproven)
    if (all.every(({ uncovered }) => uncovered.includes(society)))
      runs[0]!.onEvent?.({ kind: 'unproven', society, reason: 'no access that was given opens it' })
  const total = {
    proven: all.reduce((sum, { proven }) => sum + proven, 0),
    rows: all.reduce((sum, { rows }) => sum + rows, 0),
    differed: all.flatMap(({ differed }) => differed),
    unproven,
  }
  const { name } = runs[0]!.copy
  const ms = performance.now() - started
  if (json) terminal.json({ time: new Date().toISOString(), kind: 'done', copy: name, ...total })
  else
    terminal.print(
      `${name}: ${countText(total.proven)} ledgers with ${countText(total.rows)} movements are equal; ${secondsText(ms)}`,
    )
  if (error) throw error
  if (unproven.length > 0) throw new Failure(`Not proven: ${unproven.join(', ')}`)
  if (total.differed.length === 0) return
  const differed = total.differed.join(', ')
  if (!repair) throw new Failure(`Different: ${differed}`, 'Without --no-repair they are read again.')
  throw new Failure(`Different, and read again: ${differed}`, 'They are equal now.', {
    exitCode: exitCodes.differs,
  })
}
