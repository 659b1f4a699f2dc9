/**
 * Brings an area to one state of the ledger, within one change: every part that may have changed, and the collections.
 *
 * Changes name the entries of the whole folder that have changed, and an entry is in one part. Once each of them has
 * come, the other parts need not be asked, unless an account or a journal has changed: these appear in lines of any
 * part. Names of payments, axes, sections and partners do, too, and are in no collection that is read here, so a part's
 * own cursor stays behind until it is asked again: at each start, and every {@link thoroughMs} of following.
 */

import { Failure } from '../../../../terminal/src/command-errors.ts'
import type { Changes, Entry } from '../../client/grandlivre.ts'
import {
  type Collected,
  type Folder,
  isGone,
  liveliest,
  partsOf,
  readChanges,
  readCollections,
  readEntries,
} from './folder.ts'
import { idOfLine, linesOf } from './lines/entry-lines.ts'
import {
  type Change,
  type Counts,
  type EntryRange,
  everyEntry,
  isSamePart,
  type Part,
  type PartState,
  type State,
} from './targets/target.ts'

/** How long a part may go without being asked while the folder is followed. */
export const thoroughMs = 600_000
/** How often the ledger may change while it is asked. */
const roundsMax = 20

export class BusyLedger extends Failure {}

export interface Poll {
  part: Part
  changes: Changes<Entry>
}

export interface Settled extends Counts {
  cursor: string
}

/**
 * @param state of the area; if this fails, read it again
 * @param poll the answer that says that something has changed; without it every part is asked
 * @throws {BusyLedger} if the ledger changes all the time
 */
export async function settle(
  folder: Folder,
  change: Change,
  state: State,
  poll: Poll | undefined,
): Promise<Settled> {
  const settling = new Settling(folder, change, state, poll === undefined)
  if (poll) await settling.take(poll)
  for (let round = 1; round <= roundsMax; round += 1) {
    const collected = await readCollections(folder)
    if (collected.cursor === undefined) continue
    await settling.follow(collected)
    if (!(await settling.reach(collected.cursor))) continue
    await change.setCollections(collected.collections)
    const { cursor, labels } = collected
    const watched = liveliest(collected.collections, folder.source, new Date().toISOString().slice(0, 10))
    await change.setState({ ...state, cursor, labels, ...(watched === undefined ? {} : { watched }) })
    return { ...settling.counts, cursor }
  }
  throw new BusyLedger(
    `The ledger changed ${roundsMax} times while it was asked for its changes`,
    'Try again when less is written to it. The copy is as it was before.',
  )
}

class Settling {
  readonly counts: Counts = { entries: 0, movements: 0, removed: 0 }
  readonly asked = new Set<PartState>()
  readonly #folder: Folder
  readonly #change: Change
  readonly #state: State
  readonly #pending = new Pending()
  #isThorough: boolean

  constructor(folder: Folder, change: Change, state: State, isThorough: boolean) {
    this.#folder = folder
    this.#change = change
    this.#state = state
    this.#isThorough = isThorough
  }

  /** Drops the parts of exercices that are gone, and makes place for new ones. */
  async follow({ collections, labels }: Collected): Promise<void> {
    const { parts } = this.#state
    const current = partsOf(collections, this.#folder.source)
    for (const gone of parts.filter((part) => !current.some((one) => isSamePart(one, part))))
      this.#count(await this.#change.replace(gone, everyEntry, []))
    this.#state.parts = current.map((part) => parts.find((known) => isSamePart(known, part)) ?? part)
    // Entries of an exercice that is new may have been in another one.
    if (this.#state.labels !== labels || this.#state.parts.some(({ cursor }) => cursor === undefined))
      this.#isThorough = true
  }

  /** @returns whether everything that had to be asked is at the cursor */
  async reach(cursor: string): Promise<boolean> {
    for (const part of this.#state.parts) {
      const isDue = this.#isThorough || this.asked.has(part) || !this.#pending.isEmpty
      if (!isDue || part.cursor === cursor) continue
      try {
        await this.#ask(part)
      } catch (error) {
        // The next round no longer has it.
        if (isGone(error)) return false
        throw error
      }
      if (part.cursor !== cursor) return false
    }
    return true
  }

  async take({ part, changes }: Poll): Promise<void> {
    const known = this.#state.parts.find((one) => isSamePart(one, part))!
    this.asked.add(known)
    this.#pending.add(changes.ranges, changes.cursor)
    this.#count(await this.#change.replace(known, changes.ranges, this.#noted(changes.lines())))
    known.cursor = changes.cursor
  }

  async #ask(part: PartState): Promise<void> {
    const { extended } = this.#state
    if (part.cursor !== undefined)
      return this.take({ part, changes: await readChanges(this.#folder, part, extended, part.cursor) })
    this.asked.add(part)
    const stream = readEntries(this.#folder, part, extended)
    this.#count(await this.#change.replace(part, everyEntry, this.#noted(stream.chunks())))
    part.cursor = stream.progress.cursor!
  }

  async *#noted(lines: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of lines) {
      for (const line of linesOf(chunk)) this.#pending.found(idOfLine(line))
      yield chunk
    }
  }

  #count({ entries, movements, removed }: Counts): void {
    this.counts.entries += entries
    this.counts.movements += movements
    this.counts.removed =
      this.counts.removed === null || removed === null ? null : this.counts.removed + removed
  }
}

/** More are not followed one by one. */
const idsMax = 2_000

/** Which changed entries no part has shown yet: as long as there are some, another part may have them. */
export class Pending {
  readonly #ids = new Set<number>()
  /** Found at the cursor: another part cannot have them. */
  readonly #seen = new Set<number>()
  #cursor: string | undefined
  #isEverything = false

  get isEmpty(): boolean {
    return !this.#isEverything && this.#ids.size === 0
  }

  /**
   * @param ranges that name entries of the whole folder
   * @param cursor up to which they have changed: an entry that was found at an earlier one may have moved since
   */
  add(ranges: readonly EntryRange[], cursor: string): void {
    if (cursor !== this.#cursor) this.#seen.clear()
    this.#cursor = cursor
    const count = ranges.reduce((sum, [from, to]) => sum + Number(to) - Number(from) + 1, 0)
    if (count > idsMax) this.#isEverything = true
    if (this.#isEverything) return
    for (const [from, to] of ranges)
      for (let id = Number(from); id <= Number(to); id += 1) if (!this.#seen.has(id)) this.#ids.add(id)
  }

  /** A part has this entry. */
  found(id: number): void {
    this.#seen.add(id)
    this.#ids.delete(id)
  }
}
