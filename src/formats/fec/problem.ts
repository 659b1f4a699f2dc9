/** Problems of a FEC, described so that its author can find and correct them. */
import { printable } from '../../../packages/terminal/src/printable.ts'

export interface FecProblem {
  /** 1-based, as editors count: the header is line 1. */
  line: number
  /** The column as the regulation names it, or `line`, `header`, `file`, `total`. */
  column: string
  /** The value in the file, without padding; long values are cut. */
  value: string
  /** What is expected instead. */
  message: string
}

/** The check stops at this many problems: enough to see a pattern, few enough to read. */
export const problemsMax = 20

export class FecError extends Error {
  readonly problems: readonly FecProblem[]

  constructor(problems: readonly FecProblem[]) {
    const lines = problems.map(
      ({ line, column, value, message }) =>
        `  line ${line}, ${column}${value && ` "${printable(value)}"`}: ${message}`,
    )
    const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`
    const more = problems.length >= problemsMax ? ', and there may be more' : ''
    super(`The file was not imported: ${count}${more}\n${lines.join('\n')}`)
    this.name = 'FecError'
    this.problems = problems
  }
}

const valueCharactersMax = 60

/** Collects the problems of one file, so that many are reported at once. */
export class FecProblems {
  readonly #found: FecProblem[] = []

  /** @throws {FecError} when there are `problemsMax` */
  add(line: number, column: string, value: string, message: string): void {
    const shown = value.length > valueCharactersMax ? `${value.slice(0, valueCharactersMax)}...` : value
    this.#found.push({ line, column, value: shown, message })
    if (this.#found.length >= problemsMax) this.throwIfAny()
  }

  get any(): boolean {
    return this.#found.length > 0
  }

  /** @throws {FecError} with all problems found so far, in the order of the file */
  throwIfAny(): void {
    if (this.any) throw new FecError(this.#found.toSorted((one, other) => one.line - other.line))
  }
}
