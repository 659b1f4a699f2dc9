import { printable } from '../../../packages/terminal/src/printable.ts'

/** A file that was not imported, with its problems, a line each. */
export class ImportRefused extends Error {
  override name = 'ImportRefused'
  readonly problems: readonly string[]

  /** @param count of all problems, of which some are named */
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
