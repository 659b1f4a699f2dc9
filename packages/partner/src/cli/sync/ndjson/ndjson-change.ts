/** One change of an area: appended lines go to the end of its file, replaced ones into a new file. */
import { type FileHandle, open, rm } from 'node:fs/promises'
import { idOfLine, linesOf, movementLines } from '../lines/entry-lines.ts'
import {
  type Change,
  type Collections,
  type Counts,
  type EntryRange,
  isSamePart,
  type Part,
  type State,
} from '../targets/target.ts'
import type { AreaFile, Kept, Segment } from './area-file.ts'
import { entryOf, LineWriter, linesBetween, wrapped, wrappingOf } from './wrapped-lines.ts'

/** New lines of a part, in a file of their own until the change is made. */
interface Replacement {
  part: Part
  ranges: { from: number; to: number }[]
  path: string
  bytes: number
}

export class NdjsonChange implements Change {
  readonly #area: AreaFile
  readonly #number: number
  readonly #replacements: Replacement[] = []
  /** Of each entry with new lines the place of its last replacement: what is older, in any part, no longer counts. */
  readonly #latest = new Map<number, number>()
  #appended: Segment[] = []
  #collections: Collections | undefined
  #state: State | undefined
  #file: FileHandle | undefined

  constructor(area: AreaFile) {
    this.#area = area
    this.#number = area.nextChange
  }

  async append(part: Part, lines: Uint8Array): Promise<Counts> {
    if (!this.#file) {
      this.#file = await open(this.#area.path, this.#area.kept ? 'r+' : 'w')
      // A change that failed may have left lines here.
      await this.#file.truncate(this.#area.bytes)
    }
    const start = this.#appended.at(-1)?.end ?? this.#area.bytes
    const { counts, bytes } = await writeEntries(this.#file, start, part, [lines])
    this.#appended.push({ exercice: part.exercice, draft: part.draft, start, end: start + bytes })
    return counts
  }

  async replace(
    part: Part,
    ranges: readonly EntryRange[],
    lines: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<Counts> {
    const place = this.#replacements.length
    const path = `${this.#area.path}.${this.#number}.delta${place}`
    const replacement: Replacement = {
      part,
      ranges: ranges.map(([from, to]) => ({ from: Number(from), to: Number(to) })),
      path,
      bytes: 0,
    }
    this.#replacements.push(replacement)
    const file = await open(path, 'w')
    try {
      const { counts, bytes } = await writeEntries(file, 0, part, lines, (id) => this.#latest.set(id, place))
      replacement.bytes = bytes
      return counts
    } finally {
      await file.close()
    }
  }

  async setCollections(collections: Collections): Promise<void> {
    this.#collections = collections
  }

  async setState(state: State): Promise<void> {
    // The caller goes on with its own.
    this.#state = structuredClone(state)
  }

  async commit(): Promise<void> {
    const { kept } = this.#area
    const state = this.#state ?? kept?.state
    if (!state) throw new Error('A change of an empty area needs a state')
    await this.#file?.sync()
    const segments = joinedSegments([...(kept?.segments ?? []), ...this.#appended])
    const changed = this.#replacements.some(({ ranges, bytes }) => ranges.length > 0 || bytes > 0)
    const rewritten = changed || kept === undefined
    const next: Kept = {
      state,
      segments: rewritten ? await this.#rewrite(state.parts, segments) : segments,
      change: rewritten ? this.#number : (kept?.change ?? 0),
      accounts: this.#collections?.accounts ?? kept?.accounts ?? [],
      journals: this.#collections?.journals ?? kept?.journals ?? [],
      exercices: this.#collections?.exercices ?? kept?.exercices ?? [],
    }
    await this.#area.keep(next, rewritten)
  }

  async end(): Promise<void> {
    await this.#file?.close()
    for (const { path } of this.#replacements) await rm(path, { force: true })
  }

  /** The whole file anew, part after part, each by id of the entry. */
  async #rewrite(parts: readonly Part[], segments: Segment[]): Promise<Segment[]> {
    const file = await open(this.#area.partPath(this.#number), 'w')
    try {
      const writer = new LineWriter(file, 0)
      const written: Segment[] = []
      for (const part of parts) {
        const start = writer.at
        await this.#rewritePart(
          part,
          segments.filter((segment) => isSamePart(segment, part)),
          writer,
        )
        written.push({ exercice: part.exercice, draft: part.draft, start, end: writer.at })
      }
      await writer.flush()
      await file.sync()
      return written
    } finally {
      await file.close()
    }
  }

  /** Merges the lines of the part that are kept with its new ones, by id of the entry. */
  async #rewritePart(part: Part, segments: Segment[], writer: LineWriter): Promise<void> {
    const sources = segments.map(({ start, end }) => this.#current(this.#area.path, start, end, part, -1))
    for (const [place, { part: other, path, bytes }] of this.#replacements.entries())
      if (isSamePart(other, part)) sources.push(this.#current(path, 0, bytes, part, place))
    const heads = await Promise.all(sources.map((source) => source.next()))
    for (;;) {
      let first = -1
      for (const [place, { value }] of heads.entries())
        if (value && (first === -1 || value.entry < heads[first]!.value!.entry)) first = place
      if (first === -1) return
      await writer.add(heads[first]!.value!.line)
      heads[first] = await sources[first]!.next()
    }
  }

  /** Lines of a part that no later replacement has removed. @param place of the replacement that brought them */
  async *#current(
    path: string,
    start: number,
    end: number,
    part: Part,
    place: number,
  ): AsyncGenerator<{ entry: number; line: Buffer }, undefined> {
    const later = this.#replacements.slice(place + 1).filter((other) => isSamePart(other.part, part))
    for await (const line of linesBetween(path, start, end)) {
      const entry = entryOf(line)
      if ((this.#latest.get(entry) ?? place) > place || later.some(({ ranges }) => isIn(ranges, entry)))
        continue
      yield { entry, line }
    }
  }
}

async function writeEntries(
  file: FileHandle,
  start: number,
  part: Part,
  lines: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  note: (id: number) => void = () => {},
): Promise<{ counts: Counts; bytes: number }> {
  const writer = new LineWriter(file, start)
  const wrapping = wrappingOf(part)
  const counts: Counts = { entries: 0, movements: 0, removed: null }
  for await (const chunk of lines)
    for (const line of linesOf(chunk)) {
      note(idOfLine(line))
      counts.entries += 1
      for (const movement of movementLines(line)) {
        counts.movements += 1
        await writer.add(wrapped(wrapping, movement))
      }
    }
  await writer.flush()
  return { counts, bytes: writer.at - start }
}

/** Segments of the same part that follow each other become one. */
function joinedSegments(segments: Segment[]): Segment[] {
  const joined: Segment[] = []
  for (const segment of segments) {
    const last = joined.at(-1)
    if (last && isSamePart(last, segment)) last.end = segment.end
    else joined.push({ ...segment })
  }
  return joined
}

/** Halves the ranges, which ascend, until one is left. */
function isIn(ranges: { from: number; to: number }[], entry: number): boolean {
  let [low, high] = [0, ranges.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (ranges[middle]!.to < entry) low = middle + 1
    else high = middle
  }
  return low < ranges.length && ranges[low]!.from <= entry
}
