/**
 * The revision of the bytes of what is selected; collections declare theirs (exports/render/collections.ts). It rises
 * whenever the bytes change, so that ETags of older bytes no longer match. `fixtures/format-revisions.json` records the
 * output of each revision for the fixtures; a test fails if bytes changed and their revision did not.
 */
export const formatRevisions = {
  movements: 1,
  entries: 1,
  balance: 1,
} as const
