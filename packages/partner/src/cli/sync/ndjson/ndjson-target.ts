/** A copy as one NDJSON file, with its state and the collections in `<file>.state.json`. */
import { createHash, type Hash } from 'node:crypto'
import { rename } from 'node:fs/promises'
import { Failure } from '../../../../../terminal/src/command-errors.ts'
import { lockFile } from '../targets/lock.ts'
import type { Area, Change, EntryRange, Part, State, Target } from '../targets/target.ts'
import { AreaFile, sizeOf } from './area-file.ts'
import { NdjsonChange } from './ndjson-change.ts'
import { entryOf, linesBetween, movementOf } from './wrapped-lines.ts'

export class NdjsonTarget implements Target {
  readonly name: string
  readonly #areas: Record<Area, AreaFile>
  readonly #unlock: () => void

  private constructor(path: string, unlock: () => void) {
    this.name = path
    this.#areas = { copy: new AreaFile(path), next: new AreaFile(`${path}.next`) }
    this.#unlock = unlock
  }

  /** @throws {Failure} if another sync writes the file, or it is none of ours */
  static async open(path: string): Promise<NdjsonTarget> {
    const target = new NdjsonTarget(path, lockFile(path))
    try {
      await target.#areas.copy.recover()
      await target.#areas.next.recover()
      if (target.#areas.copy.kept === undefined && (await sizeOf(path)) > 0)
        throw new Failure(
          `${path} exists, and ${target.#areas.copy.statePath} does not say what it holds`,
          'Move it away, or choose another file for --to.',
        )
      return target
    } catch (error) {
      await target.close()
      throw error
    }
  }

  async state(area: Area): Promise<State | undefined> {
    return structuredClone(this.#areas[area].kept?.state)
  }

  async change<T>(area: Area, write: (change: Change) => Promise<T>): Promise<T> {
    const change = new NdjsonChange(this.#areas[area])
    try {
      const result = await write(change)
      await change.commit()
      return result
    } finally {
      await change.end()
    }
  }

  async clearNext(): Promise<void> {
    await this.#areas.next.remove()
  }

  /** If a kill comes between the first two steps, the next run reads the ledger anew. */
  async promote(): Promise<void> {
    const { copy, next } = this.#areas
    const kept = next.kept!
    const change = copy.nextChange
    await rename(next.path, copy.partPath(change))
    await copy.keep({ ...kept, change }, true)
    await next.remove()
  }

  async digests(part: Part, ranges: readonly EntryRange[]): Promise<string[]> {
    const area = this.#areas.copy
    const digests: string[] = []
    let hash: Hash = createHash('sha256')
    const endOf = (place: number): number => Number(ranges[place]?.[1] ?? Number.POSITIVE_INFINITY)
    const passTo = (entry: number): void => {
      for (; endOf(digests.length) < entry && digests.length < ranges.length; hash = createHash('sha256'))
        digests.push(hash.digest('hex'))
    }
    for (const { start, end } of area.segmentsOf(part))
      for await (const line of linesBetween(area.path, start, end)) {
        const entry = entryOf(line)
        passTo(entry)
        if (Number(ranges[digests.length]?.[0] ?? Number.POSITIVE_INFINITY) <= entry)
          hash.update(movementOf(line)).update('\n')
      }
    passTo(Number.POSITIVE_INFINITY)
    return digests
  }

  async close(): Promise<void> {
    this.#unlock()
  }
}
