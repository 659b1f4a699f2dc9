/**
 * The revision of the bytes of everything that has an ETag. It rises whenever the bytes change, so that ETags of older
 * bytes no longer match. `fixtures/format-revisions.json` records the output of each revision for the fixtures; a test
 * fails if bytes changed and their revision did not.
 */
export const formatRevisions = {
  movements: 1,
  entries: 1,
  balance: 1,
  accountingFolder: 2,
  payments: 2,
  banks: 2,
  journals: 2,
  accounts: 2,
  exercices: 2,
  analytics: 2,
} as const
