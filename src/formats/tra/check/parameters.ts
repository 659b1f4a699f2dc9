/** The parameter records of a TRA file: their lines, and the codes that they define or cite. */
import { layouts, type TraRecord } from '../layouts.ts'
import { rulesOf } from './line-form.ts'
import type { TraLine, TraProblems } from './parse.ts'

/** Records that define a CODE which other records cite. */
const defining = ['ETB', 'MDP', 'MDR', 'DEV', 'REG', 'TVA', 'SAT', 'CRR', 'CGN', 'CAE', 'JAL']

/** Records whose lines are kept for every check. */
const readByChecks = new Set(['HEADER', 'PS1', 'EXO', 'JAL'])

export class TraParameters {
  readonly #problems: TraProblems
  readonly #isImport: boolean
  readonly #lines = new Map<string, TraLine[]>()
  /**
   * COLLECTIF by record and code; empty if the record has no such field. It is decoded once: decoding it for the two
   * look-ups of each entry line took 2 % of the check.
   */
  readonly #definitions = new Map<string, Map<string, string>>(defining.map((record) => [record, new Map()]))
  /** Citations that come before their definition, in the order of the file. */
  readonly #open: { line: TraLine; field: string; definedBy: readonly string[] }[] = []

  /** @param isImport if true, the lines of all records are kept: 100,000 CAE take 160 MB */
  constructor(problems: TraProblems, isImport: boolean) {
    this.#problems = problems
    this.#isImport = isImport
  }

  /** @param line a line that is not bare */
  add(line: TraLine): void {
    const { record } = line.layout
    this.#define(line)
    if (this.#isImport || readByChecks.has(record)) {
      const lines = this.#lines.get(record) ?? []
      this.#lines.set(record, lines)
      lines.push(line.kept())
    }
    for (const [field, definedBy] of Object.entries(rulesOf(record).cites ?? {}))
      if (line.code(field) !== '' && !this.#isCitationDefined(line, field, definedBy))
        this.#open.push({ line: line.kept(), field, definedBy })
  }

  #define(line: TraLine): void {
    const { record, fieldsByName } = line.layout
    const definitions = this.#definitions.get(record)
    if (definitions === undefined) return
    const code = codeIn(line, 'CODE')
    if (definitions.has(code))
      line.refuse(this.#problems, 'CODE', `another ${record} record defines it already`)
    definitions.set(code, fieldsByName.has('COLLECTIF') ? line.code('COLLECTIF') : '')
  }

  /** Whether at least one of the records defines the code: a bank's account may be a CAE or a CGN. */
  #isCitationDefined(line: TraLine, field: string, definedBy: readonly string[]): boolean {
    return definedBy.some((record) => this.isDefined(record, codeIn(line, field)))
  }

  lines(record: TraRecord): readonly TraLine[] {
    return this.#lines.get(record) ?? []
  }

  /** Whether a record defines the code. The code of a section is in the form of `sectionCode`. */
  isDefined(record: string, code: string): boolean {
    return this.#definitions.get(record)!.has(code)
  }

  /** COLLECTIF in the record that defines the code. */
  collectiveOf(record: 'CGN' | 'CAE', code: string): string | undefined {
    return this.#definitions.get(record)!.get(code)
  }

  /** Call after the last line: adds a problem for each citation without a definition. */
  checkCitations(): void {
    for (const { line, field, definedBy } of this.#open)
      if (!this.#isCitationDefined(line, field, definedBy))
        line.refuse(this.#problems, field, `no ${definedBy.join(' or ')} record of the file defines it`)
  }
}

/** The code of a section with its axis. @param axis such as `A1` */
export const sectionCode = (axis: string, code: string) => `${axis} ${code}`

/**
 * The code in a field, in the form that its definition has. For a default section of PS2, the name of the field tells
 * the axis.
 */
function codeIn(line: TraLine, field: string): string {
  const code = line.code(field)
  if (line.layout === layouts.SAT) return sectionCode(line.code('AXE'), code)
  const [, rank] = /^SECT(\d)ATTEND$/.exec(field) ?? []
  return rank === undefined ? code : sectionCode(`A${rank}`, code)
}
