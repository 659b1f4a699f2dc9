/** Collects the codes that records of a TRA file define, and checks that each code they cite is defined. */
import { fieldOf, layouts, type TraField, type TraLayout, type TraRecord } from '../layouts/layouts.ts'
import type { TraLine } from './parse.ts'
import type { TraProblems } from './problem.ts'

type Defined = 'ETB' | 'MDP' | 'MDR' | 'DEV' | 'REG' | 'TVA' | 'SAT' | 'CRR' | 'CGN' | 'CAE' | 'JAL'

const codes = {
  ETB: fieldOf(layouts.ETB, 'CODE'),
  MDP: fieldOf(layouts.MDP, 'CODE'),
  MDR: fieldOf(layouts.MDR, 'CODE'),
  DEV: fieldOf(layouts.DEV, 'CODE'),
  REG: fieldOf(layouts.REG, 'CODE'),
  TVA: fieldOf(layouts.TVA, 'CODE'),
  SAT: fieldOf(layouts.SAT, 'CODE'),
  CRR: fieldOf(layouts.CRR, 'CODE'),
  CGN: fieldOf(layouts.CGN, 'CODE'),
  CAE: fieldOf(layouts.CAE, 'CODE'),
  JAL: fieldOf(layouts.JAL, 'CODE'),
} satisfies Record<Defined, TraField>

const axisOfSection = fieldOf(layouts.SAT, 'AXE')
const isCollective = fieldOf(layouts.CGN, 'COLLECTIF')
const collectiveOfThirdParty = fieldOf(layouts.CAE, 'COLLECTIF')

/**
 * The fields of parameters that cite a code, and the records that may define it. One definition is enough: a bank's
 * account may be a CAE or a CGN.
 */
const citations: Partial<Record<TraRecord, readonly [field: string, ...definedBy: Defined[]][]>> = {
  PS2: [
    ['GENATTEND', 'CGN'],
    ['CLIATTEND', 'CAE'],
    ['FOUATTEND', 'CAE'],
    ['SALATTEND', 'CAE'],
    ['DIVTATTEND', 'CAE'],
  ],
  PS3: [
    ...['CPTBIL', 'CPTRES', 'CPTBEN', 'CPTPER'].map((name): [string, Defined] => [name, 'CGN']),
    ...['JALOUVRE', 'JALFERME', 'JALBAL'].map((name): [string, Defined] => [name, 'JAL']),
    ...['CLI', 'FOU', 'SAL', 'DEB', 'CRE', 'DIV'].map((name): [string, Defined] => [`${name}DEFAUT`, 'CGN']),
  ],
  PS5: [
    ['JALECC', 'JAL'],
    ['CPTECCD', 'CGN'],
    ['CPTECCC', 'CGN'],
    ['REGIMEDEFAUT', 'REG'],
    ['MRDEFAUT', 'MDR'],
    ['TVADEFAUT', 'TVA'],
    ['ETABDEFAUT', 'ETB'],
  ],
  MDR: [['MP1', 'MDP']],
  TVA: [['REGIMETVA', 'REG']],
  CGN: [['CORRESP1', 'CRR']],
  CAE: [
    ['COLLECTIF', 'CGN'],
    ['MODE REGLEMENT', 'MDR'],
    ['REGIME TVA', 'REG'],
  ],
  JAL: [['COMPTE', 'CGN']],
  RIB: [['AUXILIAIRE', 'CAE', 'CGN']],
}

export class Definitions {
  readonly #problems: TraProblems
  readonly #defined = Object.fromEntries(Object.keys(codes).map((record) => [record, new Set()])) as Record<
    Defined,
    Set<string>
  >
  readonly #collectives = new Set<string>()
  /** Collective account by third party. */
  readonly #collectiveOf = new Map<string, string>()
  /** Citations that precede the definition. */
  readonly #open: { line: TraLine; field: TraField; definedBy: readonly Defined[] }[] = []

  constructor(problems: TraProblems) {
    this.#problems = problems
  }

  /** Adds a parameter that is not bare. */
  add(line: TraLine): void {
    const { layout } = line
    if (isDefining(layout)) this.#define(line, layout.record)
    for (const [name, ...definedBy] of citations[layout.record as TraRecord] ?? []) {
      const field = fieldOf(layout, name)
      const code = line.code(field)
      if (code === '' || definedBy.some((record) => this.has(record, code))) continue
      this.#open.push({ line: line.kept(), field, definedBy })
    }
    if (layout === layouts.PS2) this.#addDefaultSections(line)
  }

  has(record: Defined, code: string): boolean {
    return this.#defined[record].has(code)
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
      if (!definedBy.some((record) => this.has(record, codeIn(line, field))))
        line.refuse(this.#problems, field, `no ${definedBy.join(' or ')} record of the file defines it`)
  }

  #define(line: TraLine, record: Defined): void {
    const code = codeIn(line, codes[record])
    if (this.has(record, code))
      line.refuse(this.#problems, codes[record], `another ${record} record defines it already`)
    this.#defined[record].add(code)
    if (record === 'CAE') this.#collectiveOf.set(code, line.code(collectiveOfThirdParty))
    if (record === 'CGN' && line.code(isCollective) === 'X') this.#collectives.add(code)
  }

  #addDefaultSections(line: TraLine): void {
    for (const rank of [1, 2, 3, 4, 5]) {
      const field = fieldOf(layouts.PS2, `SECT${rank}ATTEND`)
      if (!line.isBlank(field)) this.#open.push({ line: line.kept(), field, definedBy: ['SAT'] })
    }
  }
}

function isDefining(layout: TraLayout): layout is TraLayout & { record: Defined } {
  return Object.hasOwn(codes, layout.record)
}

/**
 * The key of its definition. Sections include their axis; for a default section of PS2 it is in the name of the field.
 */
function codeIn(line: TraLine, field: TraField): string {
  const code = line.code(field)
  if (line.layout === layouts.SAT) return `${line.code(axisOfSection)} ${code}`
  const [, rank] = /^SECT(\d)ATTEND$/.exec(field.name) ?? []
  return rank === undefined ? code : `A${rank} ${code}`
}
