import type { EntryRange } from '../../ledger/changes/entry-ranges.ts'

/** The first line of an answer to `since` (docs/spec/changes.md#changes-since), without its line feed. */
export interface ChangesLine {
  /** The cursor that the caller has. */
  since: string
  /** The cursor of the state that the answer leads to. */
  cursor: string
  /** Nothing that the caller has of these entries is valid any more. */
  entries: readonly EntryRange[]
}

export function changesLine({ since, cursor, entries }: ChangesLine): string {
  return `${JSON.stringify({ since, cursor, entries })}\n`
}
