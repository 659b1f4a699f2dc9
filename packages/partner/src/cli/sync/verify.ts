/** `grandlivre verify`: compares a copy with its ledger, and reads again what differs. */

import { countText, secondsText } from '../../../../terminal/src/amounts.ts'
import { command } from '../../../../terminal/src/command.ts'
import { GrandlivreError } from '../../client/errors.ts'
import type { Call } from '../command.ts'
import { bringUpToDate } from './bring-up-to-date.ts'
import { type Copying, readRanges } from './folder.ts'
import { noCopyIn, openCopy } from './open-copy.ts'
import { type Part, partName, type State } from './targets/target.ts'

export const verify = command({
  name: 'verify',
  summary: 'compare a synced copy with the ledger, and repair it',
  about: `Brings the copy up to date and compares it with the ledger, block by block: the
digests that the service computes of its lines with those of the copy's. What
differs is read again. Exit code 0 says that the movements of the copy are those
of the ledger.`,
  options: {
    to: { value: 'target', required: true, help: 'the copy, as for sync' },
    exercice: { value: 'id or year', help: 'as for sync, if the copy holds one exercice' },
  },
  examples: ['grandlivre verify --to ledger.sqlite'],
  run: runVerify,
})

/** What was compared in a part. */
export interface Verified extends Part {
  blocks: number
  /** Blocks that differed, and are equal now. */
  repaired: number
  movements: number
  cursor: string
}

async function runVerify(call: Call, given: { to: string; exercice?: string }): Promise<void> {
  const { terminal, json } = call
  const started = performance.now()
  const { folder, target } = await openCopy(call, given, { isThere: true })
  try {
    if ((await target.state('copy')) === undefined) throw noCopyIn(target.name)
    const verified = await verifyCopy({ folder, target, terminal })
    const sum = (name: 'blocks' | 'repaired' | 'movements') =>
      verified.reduce((total, part) => total + part[name], 0)
    const total = { blocks: sum('blocks'), repaired: sum('repaired'), movements: sum('movements') }
    const ms = performance.now() - started
    if (json) return terminal.json({ target: target.name, ...total, parts: verified, seconds: ms / 1000 })
    const repaired = total.repaired === 0 ? '' : `, ${countText(total.repaired)} of them after a repair`
    terminal.print(`${target.name} has the movements of the ledger`)
    terminal.print(
      `${countText(total.movements)} movements in ${countText(total.blocks)} blocks are equal${repaired}; ${secondsText(ms)}`,
    )
  } finally {
    await target.close()
  }
}

/** @throws {GrandlivreError} COPY-DIFFERS if a part still differs after several attempts */
export async function verifyCopy(copying: Copying): Promise<Verified[]> {
  const verified: Verified[] = []
  const state = await catchUp(copying)
  for (const part of state.parts) {
    copying.terminal.progress(`Comparing ${partName(part)}`, verified.length / state.parts.length)
    const found = await verifyPart(copying, part)
    if (found) verified.push({ exercice: part.exercice, draft: part.draft, ...found })
  }
  return verified
}

async function verifyPart(copying: Copying, part: Part): Promise<Omit<Verified, keyof Part> | undefined> {
  const { folder, target, terminal } = copying
  const state = (await target.state('copy'))!
  const selection = { exercice: part.exercice, ...(part.draft ? { draft: true } : {}) }
  const copy = {
    cursor: state.cursor!,
    digests: (ranges: [string, string][]) => target.digests(part, ranges),
    // The lines of movements that the library offers are not read: the copy keeps those of entries.
    replace: async (ranges: [string, string][]) => {
      terminal.note(`${partName(part)}: ${countText(ranges.length)} blocks differ and are read again`)
      await target.change('copy', (change) =>
        change.replace(part, ranges, readRanges(folder, part, state.extended, ranges)),
      )
    },
    catchUp: async () => (await catchUp(copying)).cursor!,
  }
  try {
    const { blocks, repaired, rows, cursor } = await folder.ledger.repair(selection, copy, {
      signal: folder.signal,
    })
    return { blocks, repaired, movements: rows, cursor }
  } catch (error) {
    // It went with the last changes.
    if (error instanceof GrandlivreError && error.code === 'ERR-EXERCICE-NOT-FOUND') return undefined
    throw error
  }
}

async function catchUp(copying: Copying): Promise<State> {
  await bringUpToDate(copying, await copying.target.state('copy'))
  return (await copying.target.state('copy'))!
}
