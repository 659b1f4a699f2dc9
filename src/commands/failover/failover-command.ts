/** `failover`: after a promotion that may have lost commits, and after every restore. */

import { command } from '../../../packages/terminal/src/command.ts'
import type { StaffTerminal } from '../terminal/terminal.ts'
import { asOwner, recordAct } from '../with-database.ts'
import { type Failover, failOver } from './failover.ts'

export const failoverCommand = command({
  name: 'failover',
  summary: 'refuse what the former database gave out, after a promotion or a restore',
  options: { yes: { help: 'do not ask' } },
  async run(terminal: StaffTerminal, { yes }) {
    if (!yes) await confirm(terminal)
    await asOwner(terminal, async (client) => {
      const failover = await failOver(client)
      const { last: formerEpoch, beyond: epoch } = failover.moved.find(({ name }) => name === 'epoch')!
      await recordAct(client, {
        act: 'failover',
        details: { formerEpoch: Number(formerEpoch), epoch: Number(epoch) },
      })
      return reportOf(failover, formerEpoch, epoch)
    })
  },
})

const warning = [
  'This database takes the place of another, which may have had later commits: a standby was promoted, or a backup restored.',
  'Partners read ledgers in full again, subscribers see a gap in their numbers, and running full exports fail.',
]

/** @throws {Error} without a `yes`, or without a terminal to ask on */
async function confirm(terminal: StaffTerminal): Promise<void> {
  if (!terminal.isInteractive) throw new Error('There is no terminal to ask on. Repeat it with --yes')
  terminal.note(warning)
  // Ctrl-C and Ctrl-D are answers, too.
  const answer = await terminal.ask('Go on? Type yes:').catch(() => 'no')
  if (answer !== 'yes') throw new Error('Nothing was changed')
}

function reportOf(failover: Failover, formerEpoch: string, epoch: string): string[] {
  const { moved, subscriptions, failedExports, retiredExports } = failover
  return [
    `The epoch is ${epoch} now; before it was ${formerEpoch}. Cursors and ETags from before are refused.`,
    ...moved
      .filter(({ name }) => name !== 'epoch')
      .map(({ name, last, beyond }) => `${name} go on after ${beyond}; the last was ${last}.`),
    `Numbers of events go on after a gap in ${subscriptions} subscriptions.`,
    `${failedExports} running full exports failed; ${retiredExports} former ones no longer answer triggers.`,
    '',
    'Next:',
    '  Let the processes reach this server. They need no restart.',
    '  Keep the former server stopped, or make it a standby of this one with pg_rewind.',
    '  Repeat what staff and partners did in the lost time: revoked tokens are valid again, new ones are gone.',
    '  Import again what was imported in that time.',
  ]
}
