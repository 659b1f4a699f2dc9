/**
 * The records of a TRA file, version 011: their columns, and the source of each value. The tables are those of the
 * public descriptor; each record gives its page.
 */
import { strict as assert } from 'node:assert'
import type { Column, TraKind } from './column.ts'
import { cae, cgn, crr, jal, nsa, rib, sat, spa, ssa } from './layouts-accounts.ts'
import { analyticExtended, entry, entryExtended } from './layouts-entries.ts'
import { dev, etb, exo, header, mdp, mdr, ps1, ps2, ps3, ps5, reg, sou, tva } from './layouts-folder.ts'

export interface TraField {
  /** The descriptor's spelling; if a record has a name twice, followed by the column. */
  name: string
  /** First column, from 1. */
  at: number
  length: number
  kind: TraKind
  mandatory: boolean
  /** Source of the value. Absent if exports never fill the field. */
  from?: string
}

export interface TraLayout {
  record: string
  /** Columns 4 to 6; null for the header and for entry lines, which have none. */
  identifier: string | null
  /** Page of the descriptor. */
  page: number
  /** Whether a file of type DOS must contain it, at least as a bare identifier (p. 2). */
  mandatory: boolean
  /** Ascending, without gaps. */
  fields: readonly TraField[]
  /** Length of the whole line, and up to the end of its last mandatory field. */
  length: number
  mandatoryEnd: number
}

function layout(
  record: string,
  page: number,
  mandatory: 'mandatory' | 'optional',
  columns: readonly Column[],
): TraLayout {
  const fields = columns.map(([name, at, length, kind, mark, from]) => ({
    name,
    at,
    length,
    kind,
    mandatory: mark === 'M',
    ...(from !== undefined && { from }),
  }))
  const end = (field: TraField | undefined) => (field === undefined ? 0 : field.at + field.length - 1)
  return {
    record,
    identifier: columns[1]?.[0] === 'IDENTIFIANT' && record !== 'HEADER' ? record : null,
    page,
    mandatory: mandatory === 'mandatory',
    fields,
    length: end(fields.at(-1)),
    mandatoryEnd: end(fields.findLast((field) => field.mandatory)),
  }
}

/**
 * In the order of the file. NSA and SPA, sections of the new analytics, follow the sections that they would replace;
 * exports leave them bare.
 */
export const layouts = {
  HEADER: layout('HEADER', 9, 'mandatory', header),
  PS1: layout('PS1', 11, 'mandatory', ps1),
  PS2: layout('PS2', 12, 'mandatory', ps2),
  PS3: layout('PS3', 14, 'mandatory', ps3),
  PS5: layout('PS5', 16, 'mandatory', ps5),
  EXO: layout('EXO', 17, 'mandatory', exo),
  SSA: layout('SSA', 19, 'mandatory', ssa),
  ETB: layout('ETB', 20, 'mandatory', etb),
  MDP: layout('MDP', 21, 'mandatory', mdp),
  MDR: layout('MDR', 22, 'mandatory', mdr),
  DEV: layout('DEV', 24, 'mandatory', dev),
  REG: layout('REG', 25, 'mandatory', reg),
  TVA: layout('TVA', 26, 'mandatory', tva),
  SAT: layout('SAT', 27, 'mandatory', sat),
  NSA: layout('NSA', 79, 'mandatory', nsa),
  SPA: layout('SPA', 80, 'mandatory', spa),
  SOU: layout('SOU', 28, 'mandatory', sou),
  CRR: layout('CRR', 31, 'optional', crr),
  CGN: layout('CGN', 34, 'mandatory', cgn),
  CAE: layout('CAE', 36, 'mandatory', cae),
  JAL: layout('JAL', 39, 'mandatory', jal),
  RIB: layout('RIB', 51, 'optional', rib),
  ENTRY: layout('ENTRY', 40, 'mandatory', [...entry, ...entryExtended]),
  ANALYTIC: layout('ANALYTIC', 40, 'mandatory', [...entry, ...analyticExtended]),
} as const

export type TraRecord = keyof typeof layouts

const fieldsByName = new Map(
  Object.values(layouts).map((each) => [each, new Map(each.fields.map((field) => [field.name, field]))]),
)

export function fieldOf(layout: TraLayout, name: string): TraField {
  const field = fieldsByName.get(layout)?.get(name)
  assert(field !== undefined, `${layout.record} has no field ${name}`)
  return field
}
