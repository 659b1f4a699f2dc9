import type { EntryRow } from '../formats/items/entry.ts'
import type { Given } from '../formats/items/table.ts'

type NumberedEntry = Given<Pick<EntryRow, 'exerciceId' | 'journalId' | 'validatedAt'>>

/**
 * Numbers the validated entries of new exercices (docs/spec/fec.md#numbers): 1, 2, 3 in each journal, in the order in
 * which they are loaded: a loader that streams does not know the order of their days of validation. The database
 * numbers entries that come without a number itself, but writes each of them twice.
 */
export class EntryNumbers {
  readonly #last = new Map<string, number>()

  /** Null for a draft. */
  next({ exerciceId, journalId, validatedAt }: NumberedEntry): string | null {
    if (!validatedAt) return null
    const key = `${exerciceId} ${journalId}`
    const number = (this.#last.get(key) ?? 0) + 1
    this.#last.set(key, number)
    return String(number)
  }
}
