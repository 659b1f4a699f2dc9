/** What is wrong with a TRA file, said so that its author can find it. */

export interface TraProblem {
  /** From 1, as editors count. */
  line: number
  /** From 1, as the descriptor counts. */
  column: number
  /** As `ENTRY.MONTANT1`; empty where no field is meant. */
  field: string
  /** As it stands in the file, without padding. */
  value: string
  message: string
}

/** So many are kept: one mistake of a program shows in every line of a file, and a few of them tell as much. */
const keptMax = 100

export class TraProblems {
  readonly kept: TraProblem[] = []
  count = 0

  add(problem: TraProblem): void {
    this.count += 1
    if (this.kept.length < keptMax) this.kept.push(problem)
  }
}
