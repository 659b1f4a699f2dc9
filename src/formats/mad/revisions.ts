/**
 * The revision of the bytes of everything that has an ETag. Raised whenever they change, so that an ETag of the former
 * bytes is not honoured. `fixtures/format-revisions.json` records what each revision made of the fixtures; a test fails
 * where bytes changed and their revision did not.
 */
export const formatRevisions = {
  movements: 1,
  entries: 1,
  accountingFolder: 2,
  payments: 2,
  banks: 2,
  journals: 2,
  accounts: 2,
  exercices: 2,
  analytics: 2,
} as const
