import type { EntryRow } from '../formats/items/entry.ts'

/**
 * Numbers the validated entries of new exercices (docs/spec/fec.md#numbers): 1, 2, 3 in each journal, in the order in
 * which they are loaded: a loader that streams does not know the order of their days of validation. The database
 * numbers entries that come without a number itself, but writes each of them twice.
 */
export class EntryNumbers {
  readonly #last = new Map<string, number>()

  /** Null for a draft. */
  next({
    exerciceId,
    journalId,
    validatedAt,
  }: Pick<EntryRow, 'exerciceId' | 'journalId' | 'validatedAt'>): string | null {
    if (validatedAt === null) return null
    const key = `${exerciceId} ${journalId}`
    const number = (this.#last.get(key) ?? 0) + 1
    this.#last.set(key, number)
    return String(number)
  }
}
