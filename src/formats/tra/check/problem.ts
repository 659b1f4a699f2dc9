/** Problems of a TRA file, described so that its author can find them. */

export interface TraProblem {
  /** From 1, as editors count. */
  line: number
  /** From 1, as the descriptor counts. */
  column: number
  /** Such as `ENTRY.MONTANT1`; empty if no field is meant. */
  field: string
  /** The value in the file, without padding. */
  value: string
  message: string
}

/** Problems kept: one mistake of a program appears in every line of a file, and a few examples are enough. */
const keptMax = 100

export class TraProblems {
  readonly kept: TraProblem[] = []
  count = 0

  add(problem: TraProblem): void {
    this.count += 1
    if (this.kept.length < keptMax) this.kept.push(problem)
  }
}
