import { printable } from '../../../packages/terminal/src/printable.ts'

/** Thrown if a file was not imported because of its problems. The message has one problem per line. */
export class ImportRefused extends Error {
  override name = 'ImportRefused'
  readonly problems: readonly string[]

  /** @param count the number of all problems; `problems` may be only the first */
  constructor(problems: readonly string[], count = problems.length, options?: ErrorOptions) {
    const many = count === 1 ? '1 problem' : `${count.toLocaleString('en')} problems`
    const more = problems.length < count ? `, the first ${problems.length}` : ''
    super(
      `The file was not imported: ${many}${more}\n${problems.map((line) => `  ${printable(line)}`).join('\n')}`,
      options,
    )
    this.problems = problems
  }
}
