/**
 * `failover`: begins a new epoch. It is for a database that replaced another and cannot detect that itself, such as
 * one restored from a snapshot of a disk (src/db/migrations/functions/epoch.sql). Subscriptions, claims and the
 * audit catch up when they next draw a number, so there is nothing else to do.
 */

import { command } from '../../../packages/terminal/src/command.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { asOwner, recordAct } from '../with-database.ts'
import { beginEpoch, type Moved, notifyAll } from './failover.sql.ts'

export const failoverCommand = command({
  name: 'failover',
  summary: 'start a new epoch, for a snapshot of a disk or a copy that was started without recovery',
  options: { yes: { help: 'do not ask' } },
  async run(terminal: StaffTerminal, { yes }) {
    if (!yes) await confirm(terminal)
    await asOwner(terminal, async (client) => {
      const moved = await beginEpoch(client)
      await notifyAll(client)
      const { last: formerEpoch, beyond: epoch } = moved.find(({ name }) => name === 'epoch')!
      await recordAct(client, {
        act: 'failover',
        details: { formerEpoch: Number(formerEpoch), epoch: Number(epoch) },
      })
      return reportOf(moved, formerEpoch, epoch)
    })
  },
})

const warning = [
  'This database takes the place of another, which may have had later commits. It cannot detect that itself: it is a snapshot of a disk, for example.',
  'Partners compare their ledgers by digests, subscribers see a jump in their numbers, and running full exports begin again.',
]

/** Asks whether to go on. @throws {Error} if the answer is not `yes`, or if there is no terminal to ask on */
async function confirm(terminal: StaffTerminal): Promise<void> {
  if (!terminal.isInteractive)
    throw new Error('There is no terminal to ask on. Repeat the command with --yes')
  terminal.note(warning)
  // Ctrl-C and Ctrl-D count as no.
  const answer = await terminal.ask('Go on? Type yes:').catch(() => 'no')
  if (answer !== 'yes') throw new Error('Nothing was changed')
}

function reportOf(moved: Moved[], formerEpoch: string, epoch: string): string[] {
  return [
    `The epoch is ${epoch} now; before it was ${formerEpoch}. Cursors and ETags from before are refused.`,
    ...moved
      .filter(({ name }) => name !== 'epoch')
      .map(({ name, last, beyond }) => `${name} go on after ${beyond}; the last was ${last}.`),
    'Numbers of events go on after a jump in each subscription, with its next event. Running full exports begin again.',
    '',
    'Next:',
    '  Let the processes reach this server. They need no restart.',
    '  Keep the former server stopped, or make it a standby of this one with pg_rewind.',
    '  Repeat what staff and partners did in the lost time: revoked tokens are valid again, new ones are gone.',
    '  Import again what was imported in that time.',
  ]
}
