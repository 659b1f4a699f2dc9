/**
 * Where a copy of a folder's ledger is kept. A target holds two areas: the copy, and beside it, while it is read in
 * full, the next one. Each write is all or nothing, together with the state that says what it holds.
 */
import type { Account, Exercice, Journal } from '../../../client/api/items.ts'
import type { RowsOfPart } from '../lines/rows.ts'

/** Entries of an exercice that are validated, or its drafts. An entry is in one part of the folder. */
export type Part = RowsOfPart

/** Inclusive, in decimal digits. In a list they ascend and are disjoint. */
export type EntryRange = readonly [from: string, to: string]

export const everyEntry: readonly EntryRange[] = [['0', '9007199254740991']]

/** What an area holds. */
export interface State {
  /** What it is a copy of; another source is refused. */
  source: Source
  /** The state of the ledger that all of it shows: absent while it is read for the first time. */
  cursor?: string
  parts: PartState[]
  /** The exercice whose changes are waited for. */
  watched?: string
  /** SHA-256 of the collections that appear in lines. */
  labels?: string
  /** Whether lines have the members of `columns=extended`. */
  extended: boolean
}

export interface Source {
  baseUrl: string
  folder: string
  /** The only exercice that is kept; absent for all. */
  exercice?: string
}

export interface PartState extends Part {
  /** The state of the ledger for which the service was last asked about this part. */
  cursor?: string
  /** How far the first reading has come. */
  reading?: { after: string; etag: string; rows: number }
}

/** Items of docs/spec/resources.md, as they came. */
export interface Collections {
  accounts: Account[]
  journals: Journal[]
  exercices: Exercice[]
}

export interface Counts {
  /** Entries removed from their ranges, whether or not they came again. Null where the target does not count them. */
  removed: number | null
  entries: number
  movements: number
}

export type Area = 'copy' | 'next'

export interface Target {
  /** For messages. */
  readonly name: string
  /** Undefined where the area is empty. */
  state(area: Area): Promise<State | undefined>
  /** Everything that `write` does, or nothing of it. */
  change<T>(area: Area, write: (change: Change) => Promise<T>): Promise<T>
  /** Removes the next copy. */
  clearNext(): Promise<void>
  /** Puts the next copy in place of the copy, at once. */
  promote(): Promise<void>
  /** SHA-256, hexadecimal, of the NDJSON lines of the copy's movements in each range. */
  digests(part: Part, ranges: readonly EntryRange[]): Promise<string[]>
  close(): Promise<void>
}

export interface Change {
  /** Adds entries that the area does not have, in ascending order. */
  append(part: Part, lines: Uint8Array): Promise<Counts>
  /**
   * Removes the entries of the part in the ranges, and adds these: whole lines, ascending, all in a range. An entry that
   * another part has is moved.
   */
  replace(
    part: Part,
    ranges: readonly EntryRange[],
    lines: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ): Promise<Counts>
  setCollections(collections: Collections): Promise<void>
  setState(state: State): Promise<void>
}

export function isSamePart(one: Part, other: Part): boolean {
  return one.exercice === other.exercice && one.draft === other.draft
}

export function partName({ exercice, draft }: Part): string {
  return `exercice ${exercice}${draft ? ', drafts' : ''}`
}
