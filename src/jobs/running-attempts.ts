/** The attempts at full exports that this process makes, for staff to see. */
import type { RunningAttempt } from './attempt.ts'

type ShownAttempt = Pick<RunningAttempt, 'progress' | 'threadId'>

export class RunningAttempts {
  readonly #running = new Map<string, { attempt: number; shown: ShownAttempt }>()
  readonly #ended = { rows: 0, bytes: 0 }

  /** Lists the attempt until the returned function is called. */
  begin({ exportId, attempt }: { exportId: string; attempt: number }, shown: ShownAttempt): () => void {
    const listed = { attempt, shown }
    this.#running.set(exportId, listed)
    return () => {
      const { rows, bytes } = shown.progress()
      this.#ended.rows += rows
      this.#ended.bytes += bytes
      // A later attempt at the same export stays listed.
      if (this.#running.get(exportId) === listed) this.#running.delete(exportId)
    }
  }

  /** Totals of all attempts since the process began. Bytes are counted before compression. */
  totals(): { rows: number; bytes: number } {
    const totals = { ...this.#ended }
    for (const { shown } of this.#running.values()) {
      const { rows, bytes } = shown.progress()
      totals.rows += rows
      totals.bytes += bytes
    }
    return totals
  }

  /** Returns undefined if no attempt is being made, or another process makes it. */
  find(exportId: string) {
    const found = this.#running.get(exportId)
    if (!found) return undefined
    return { attempt: found.attempt, threadId: found.shown.threadId(), progress: found.shown.progress() }
  }
}
