/** Proves the rows of a copy with digests of the service, and reads again the rows that differ. */
import type { Ledger } from '../client/ledgers/ledger-parts.ts'
import type { Run } from './events.ts'
import { type Comparison, compare, repairDiffering } from './level.ts'
import { bringUpToDate, isChosen } from './run.ts'

/** How often a ledger is compared while it keeps changing or still differs. */
const comparisonsMax = 3

export interface Verified {
  /** Number of ledgers that are now proven equal, and of their movements. */
  proven: number
  rows: number
  /** Ids of folders that differed, or that had rows without being listed in the copy. */
  differed: string[]
  /** Ids of folders that could not be proven: gone, refused, changing all the time, or still different. */
  unproven: string[]
  /**
   * Ids of folders of the copy that the access does not open and that are not noted as gone. They were not compared.
   */
  uncovered: string[]
}

/** @param repair false: only reports what differs */
export async function verifyCopy(run: Run, { repair = true }: { repair?: boolean } = {}): Promise<Verified> {
  const { copy, ledger, signal } = run
  const verified: Verified = { proven: 0, rows: 0, differed: [], unproven: [], uncovered: [] }
  // Listed before the run, which would mistake a folder whose row somebody has deleted for a new folder.
  const strays = await copy.strays()
  for (const society of strays) {
    verified.differed.push(society)
    run.onEvent?.({ kind: 'stray', society })
  }
  let listed = await bringListed(run)
  if (repair) for (const society of strays) await copy.remove(society)
  for (const society of run.societies ?? [])
    if (!listed.has(society)) unproven(run, verified, society, 'the access opens no such folder')
  let pending = [...listed.keys()]
  for (let comparison = 1; pending.length > 0 && comparison <= comparisonsMax; comparison += 1) {
    if (comparison > 1) listed = await bringListed(run)
    const cursors = new Map((await copy.folders()).map(({ society, cursor }) => [society, cursor]))
    const again: string[] = []
    const differing: Comparison[] = []
    for await (const blocks of ledger.ledgerBlocks(pending, { signal })) {
      const { society } = blocks
      if (blocks.kind === 'refused') unproven(run, verified, society, `${blocks.code}: ${blocks.message}`)
      else if (blocks.cursor !== cursors.get(society)) again.push(society)
      else {
        const found = await compare(copy, blocks)
        if (found.isEqual) {
          verified.proven += 1
          verified.rows += found.rows
          run.onEvent?.({ kind: 'compared', society, rows: found.rows })
          continue
        }
        if (!verified.differed.includes(society)) verified.differed.push(society)
        const entries = [...found.differing, ...found.outside]
        run.onEvent?.({ kind: 'differs', society, entries, tables: found.tables })
        differing.push(found)
        again.push(society)
      }
    }
    const summary = { ledgers: differing.length, copied: 0, rows: 0, failed: [] }
    if (repair) await repairDiffering({ run, listed, summary }, differing)
    const reported = new Set(differing.map((found) => found.ledger.society))
    pending = repair ? again : again.filter((society) => !reported.has(society))
  }
  for (const society of pending)
    unproven(run, verified, society, `it changed or differed at each of ${comparisonsMax} comparisons`)
  for (const { society, gone_at } of await copy.folders()) {
    if (!isChosen(run, society) || listed.has(society) || verified.unproven.includes(society)) continue
    if (gone_at === null) verified.uncovered.push(society)
    else unproven(run, verified, society, `gone since ${gone_at}`)
  }
  return verified
}

/** Brings the copy up to date. @returns the ledgers that the run covers, by their folders */
async function bringListed(run: Run): Promise<Map<string, Ledger>> {
  const { ledgers } = await run.ledger.ledgers({ signal: run.signal })
  await bringUpToDate(run, ledgers)
  return new Map(ledgers.filter(({ society }) => isChosen(run, society)).map((one) => [one.society, one]))
}

function unproven(run: Run, verified: Verified, society: string, reason: string): void {
  verified.unproven.push(society)
  run.onEvent?.({ kind: 'unproven', society, reason })
}
