/** Analytical axes and their sections (docs/spec/resources.md#analyticalaxe). */
import type { z } from 'zod'
import * as column from './table.ts'
import { boolean, code, id, idOrNull, list, named, text, textOrNull } from './values.ts'

export const axisTable = column.table('axes', {
  id: column.id,
  code: column.text,
  name: column.text,
  /** A foreign key that is checked at commit, because sections are loaded after their axis. */
  defaultSectionId: column.orNull(column.referenceTo('sections')),
})

export const sectionTable = column.table('sections', {
  id: column.id,
  axisId: column.referenceTo('axes'),
  code: column.text,
  name: column.text,
  accountRoots: column.texts,
  closed: column.boolean,
})

export interface AxisView extends column.ShownRow<typeof axisTable> {
  defaultSectionId: string | null
  sections: column.ShownRow<typeof sectionTable>[]
}

const Section = named('Section', {
  producerId: id,
  code,
  name: text,
  account: textOrNull.meta({ description: 'Roots of account numbers', example: '60;61' }),
  additionalProducerProperties: named('SectionProperties', { closed: boolean }),
})

export const AnalyticalAxe = named('AnalyticalAxe', {
  producerId: id,
  code,
  name: text,
  sections: list(Section),
  additionalProducerProperties: named('AxisProperties', { defaultSectionId: idOrNull }),
})
export type FileAxis = z.output<typeof AnalyticalAxe>

export function axisItem(axis: AxisView): z.input<typeof AnalyticalAxe> {
  const { id, code, name, defaultSectionId, sections } = axis
  return {
    producerId: id,
    code,
    name,
    sections: sections.map((section) => ({
      producerId: section.id,
      code: section.code,
      name: section.name,
      account: section.accountRoots.length === 0 ? null : section.accountRoots.join(';'),
      additionalProducerProperties: { closed: section.closed },
    })),
    additionalProducerProperties: { defaultSectionId },
  }
}

export const axisRow = (axis: FileAxis): column.FileRow<typeof axisTable> => ({
  id: axis.producerId,
  code: axis.code,
  name: axis.name,
  defaultSectionId: axis.additionalProducerProperties.defaultSectionId,
})

export const sectionRows = (axis: FileAxis): column.FileRow<typeof sectionTable>[] =>
  axis.sections.map((section) => ({
    id: section.producerId,
    axisId: axis.producerId,
    code: section.code,
    name: section.name,
    accountRoots: section.account === null ? [] : section.account.split(';'),
    closed: section.additionalProducerProperties.closed,
  }))
