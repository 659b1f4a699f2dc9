/** The parameter records of a TRA file: their lines, and the codes that they define and cite. */
import { layouts, type TraRecord } from '../layouts.ts'
import { rulesOf } from './line-form.ts'
import type { TraLine, TraProblems } from './parse.ts'

/** Records whose CODE others cite. */
const defining = ['ETB', 'MDP', 'MDR', 'DEV', 'REG', 'TVA', 'SAT', 'CRR', 'CGN', 'CAE', 'JAL']

export class TraParameters {
  readonly #problems: TraProblems
  readonly #lines = new Map<string, TraLine[]>()
  /**
   * COLLECTIF by record and code; empty if the record has no such field. It is decoded once: each entry line looks up two,
   * which was 2 % of the check.
   */
  readonly #definitions = new Map<string, Map<string, string>>(defining.map((record) => [record, new Map()]))

  constructor(problems: TraProblems) {
    this.#problems = problems
  }

  /** @param line not bare */
  add(line: TraLine): void {
    const { record } = line.layout
    const lines = this.#lines.get(record) ?? []
    this.#lines.set(record, lines)
    const kept = line.kept()
    lines.push(kept)
    const definitions = this.#definitions.get(record)
    if (definitions === undefined) return
    const code = codeIn(kept, 'CODE')
    if (definitions.has(code))
      line.refuse(this.#problems, 'CODE', `another ${record} record defines it already`)
    definitions.set(code, kept.layout.fieldsByName.has('COLLECTIF') ? kept.code('COLLECTIF') : '')
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

  /**
   * Call after the last line: adds a problem for each citation without a definition. One definition is enough: a bank's
   * account may be a CAE or a CGN.
   */
  checkCitations(): void {
    for (const [record, lines] of this.#lines)
      for (const [field, definedBy] of Object.entries(rulesOf(record).cites ?? {}))
        for (const line of lines)
          if (line.code(field) !== '' && !definedBy.some((by) => this.isDefined(by, codeIn(line, field))))
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
