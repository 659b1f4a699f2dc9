/** The parameter records of a TRA file: their lines, and the codes that they define and cite. */
import { layouts, type TraRecord } from '../layouts.ts'
import { rulesOf } from './line-form.ts'
import type { TraLine, TraProblems } from './parse.ts'

/** Records whose CODE others cite. */
const defining = ['ETB', 'MDP', 'MDR', 'DEV', 'REG', 'TVA', 'SAT', 'CRR', 'CGN', 'CAE', 'JAL']

/** Records whose lines every check reads. */
const readByChecks = new Set(['HEADER', 'PS1', 'EXO', 'JAL'])

export class TraParameters {
  readonly #problems: TraProblems
  readonly #isImport: boolean
  readonly #lines = new Map<string, TraLine[]>()
  /**
   * COLLECTIF by record and code; empty if the record has no such field. It is decoded once: each entry line looks up two,
   * which was 2 % of the check.
   */
  readonly #definitions = new Map<string, Map<string, string>>(defining.map((record) => [record, new Map()]))
  /** Citations that precede the definition, in the order of the file. */
  readonly #open: { line: TraLine; field: string; definedBy: readonly string[] }[] = []

  /** @param isImport keeps the lines of all records: 100,000 CAE take 160 MB */
  constructor(problems: TraProblems, isImport: boolean) {
    this.#problems = problems
    this.#isImport = isImport
  }

  /** @param line not bare */
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

  /** One definition is enough: a bank's account may be a CAE or a CGN. */
  #isCitationDefined(line: TraLine, field: string, definedBy: readonly string[]): boolean {
    return definedBy.some((record) => this.isDefined(record, codeIn(line, field)))
  }

  lines(record: TraRecord): readonly TraLine[] {
    return this.#lines.get(record) ?? []
  }

  /** Whether a record defines the code. Codes of sections are those of `sectionCode`. */
  isDefined(record: string, code: string): boolean {
    return this.#definitions.get(record)!.has(code)
  }

  /** COLLECTIF of the record that defines the code. */
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

/** @param axis such as `A1` */
export const sectionCode = (axis: string, code: string) => `${axis} ${code}`

/** The code of a field, as its definition has it. For a default section of PS2 the axis is in the name of the field. */
function codeIn(line: TraLine, field: string): string {
  const code = line.code(field)
  if (line.layout === layouts.SAT) return sectionCode(line.code('AXE'), code)
  const [, rank] = /^SECT(\d)ATTEND$/.exec(field) ?? []
  return rank === undefined ? code : sectionCode(`A${rank}`, code)
}
