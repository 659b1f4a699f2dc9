/**
 * Reads a folder in full, part after part, into the next copy, and puts it in place. Each step records how far it is, so
 * that the next run continues after a kill.
 */

import { countText, rateText, sizeText } from '../../../../terminal/src/amounts.ts'
import type { Progress } from '../../client/grandlivre.ts'
import {
  type Copying,
  isChanged,
  isGone,
  partsOf,
  readCollections,
  readEntries,
  readRanges,
  refusesColumns,
} from './folder.ts'
import { bufferOf, idOfLine } from './lines/entry-lines.ts'
import { type Settled, settle } from './settle.ts'
import {
  type Change,
  type EntryRange,
  everyEntry,
  type PartState,
  partName,
  type State,
} from './targets/target.ts'

/** Bytes of lines that are written at once, at least: what a kill may lose. */
const stepBytes = 8 * 1024 * 1024
/** How often the ledger may change while a part is read. */
const beginningsMax = 10
const noEntry: readonly EntryRange[] = [['0', '0']]

export async function readInFull(copying: Copying): Promise<Settled> {
  const { folder, target } = copying
  const reader = new FullReader(copying)
  const state = (await target.state('next')) ?? (await reader.begin())
  for (const part of state.parts) if (part.cursor === undefined) await reader.readPart(state, part)
  const settled = await target.change('next', (change) => settle(folder, change, state, undefined))
  await target.promote()
  return {
    ...settled,
    entries: reader.counts.entries + settled.entries,
    movements: reader.counts.movements + settled.movements,
  }
}

class FullReader {
  readonly counts = { entries: 0, movements: 0, bytes: 0 }
  readonly #copying: Copying
  readonly #started = performance.now()

  constructor(copying: Copying) {
    this.#copying = copying
  }

  async begin(): Promise<State> {
    const { source } = this.#copying.folder
    const { collections } = await readCollections(this.#copying.folder)
    const parts = partsOf(collections, source)
    const state: State = { source, parts, extended: await this.#takesColumns(parts[0]) }
    await this.#copying.target.change('next', (change) => change.setState(state))
    return state
  }

  /** Whether the service gives the columns that an import has kept as filed. */
  async #takesColumns(part: PartState | undefined): Promise<boolean> {
    if (!part) return true
    try {
      for await (const _ of readRanges(this.#copying.folder, part, true, noEntry)) break
      return true
    } catch (error) {
      if (refusesColumns(error)) return false
      throw error
    }
  }

  async readPart(state: State, part: PartState): Promise<void> {
    for (let beginning = 1; ; beginning += 1) {
      try {
        return await this.#readOn(state, part)
      } catch (error) {
        if (!isChanged(error) && !isGone(error)) throw error
        if (beginning === beginningsMax) throw error
        this.#copying.terminal.note(
          `${(error as Error).message}: ${partName(part)} is read again from its start`,
        )
        delete part.reading
        // The collections that are read at the end no longer have it.
        if (isGone(error)) state.parts = state.parts.filter((other) => other !== part)
        await this.#copying.target.change('next', async (change) => {
          await change.replace(part, everyEntry, [])
          await change.setState(state)
        })
        if (isGone(error)) return
      }
    }
  }

  async #readOn(state: State, part: PartState): Promise<void> {
    const { reading } = part
    const stream = readEntries(this.#copying.folder, part, state.extended, reading ? { resume: reading } : {})
    const chunks = stream.chunks()
    try {
      while (part.cursor === undefined) {
        await this.#copying.target.change('next', (change) =>
          this.#step(change, state, part, stream.progress, chunks),
        )
        this.#show(part)
      }
    } finally {
      await chunks.return()
    }
  }

  /** Writes some MB, and how far the part is then. */
  async #step(
    change: Change,
    state: State,
    part: PartState,
    progress: Progress,
    chunks: AsyncGenerator<Uint8Array, void, undefined>,
  ): Promise<void> {
    let bytes = 0
    let last: Uint8Array | undefined
    while (bytes < stepBytes) {
      const { value, done } = await chunks.next()
      if (done) break
      const { entries, movements } = await change.append(part, value)
      this.counts.entries += entries
      this.counts.movements += movements
      bytes += value.length
      last = value
    }
    this.counts.bytes += bytes
    const { rows, etag, cursor } = progress
    const isWhole = bytes < stepBytes
    const { reading: _, ...done } = part
    const now: PartState = isWhole
      ? { ...done, cursor: cursor! }
      : { ...done, reading: { after: String(idOfLine(lastLine(last!))), etag: etag!, rows } }
    await change.setState({ ...state, parts: state.parts.map((one) => (one === part ? now : one)) })
    if (isWhole) delete part.reading
    Object.assign(part, now)
  }

  #show(part: PartState): void {
    const { movements, bytes } = this.counts
    const rate = rateText(bytes, performance.now() - this.#started)
    this.#copying.terminal.progress(
      `${partName(part)}: ${countText(movements)} movements, ${sizeText(bytes)}, ${rate}`,
    )
  }
}

/** @param lines whole lines, at least one */
function lastLine(lines: Uint8Array): Buffer {
  const all = bufferOf(lines)
  return all.subarray(all.lastIndexOf(10, all.length - 2) + 1)
}
