/** Collects the codes that records of a TRA file define, and checks that each code they cite is defined. */
import { layouts } from '../layouts.ts'
import { rulesOf } from './line-form.ts'
import type { TraLine, TraProblems } from './parse.ts'

/** Records whose CODE others cite. */
const defining = ['ETB', 'MDP', 'MDR', 'DEV', 'REG', 'TVA', 'SAT', 'CRR', 'CGN', 'CAE', 'JAL']

export class Definitions {
  readonly #problems: TraProblems
  readonly #codes = new Map<string, Set<string>>(defining.map((record) => [record, new Set()]))
  readonly #collectives = new Set<string>()
  /** Collective account by third party. */
  readonly #collectiveOf = new Map<string, string>()
  /** Citations that precede the definition. One definition is enough: a bank's account may be a CAE or a CGN. */
  readonly #open: { line: TraLine; field: string; definedBy: readonly string[] }[] = []

  constructor(problems: TraProblems) {
    this.#problems = problems
  }

  /** Adds a parameter that is not bare. */
  add(line: TraLine): void {
    const { record } = line.layout
    if (this.#codes.has(record)) this.#define(line, record)
    for (const [field, definedBy] of Object.entries(rulesOf(record).cites ?? {}))
      if (line.code(field) !== '' && !this.#isDefined(line, field, definedBy))
        this.#open.push({ line: line.kept(), field, definedBy })
  }

  has(record: string, code: string): boolean {
    return this.#codes.get(record)!.has(code)
  }

  hasSection(axis: string, code: string): boolean {
    return this.has('SAT', `${axis} ${code}`)
  }

  isCollective(account: string): boolean {
    return this.#collectives.has(account)
  }

  /** The collective account of a third party. */
  collectiveOf(thirdParty: string): string | undefined {
    return this.#collectiveOf.get(thirdParty)
  }

  /** Call after the last line: adds a problem for each citation without a definition. */
  close(): void {
    for (const { line, field, definedBy } of this.#open)
      if (!this.#isDefined(line, field, definedBy))
        line.refuse(this.#problems, field, `no ${definedBy.join(' or ')} record of the file defines it`)
  }

  #isDefined(line: TraLine, field: string, definedBy: readonly string[]): boolean {
    return definedBy.some((record) => this.has(record, codeIn(line, field)))
  }

  #define(line: TraLine, record: string): void {
    const code = codeIn(line, 'CODE')
    if (this.has(record, code))
      line.refuse(this.#problems, 'CODE', `another ${record} record defines it already`)
    this.#codes.get(record)!.add(code)
    if (record === 'CAE') this.#collectiveOf.set(code, line.code('COLLECTIF'))
    if (record === 'CGN' && line.code('COLLECTIF') === 'X') this.#collectives.add(code)
  }
}

/**
 * The key of its definition. Sections include their axis; for a default section of PS2 it is in the name of the field.
 */
function codeIn(line: TraLine, field: string): string {
  const code = line.code(field)
  if (line.layout === layouts.SAT) return `${line.code('AXE')} ${code}`
  const [, rank] = /^SECT(\d)ATTEND$/.exec(field) ?? []
  return rank === undefined ? code : `A${rank} ${code}`
}
