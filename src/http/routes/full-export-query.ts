/** Parameters of the full export (interface, sections 4.1 and 4.2; contract, section 3). */
import { z } from '@hono/zod-openapi'
import type { Issue } from '../../errors.ts'
import { spansMonths } from '../../exports/selection.ts'
import type { ExportFormat } from '../../jobs/job.ts'
import { accountingFolderId, date, id, idForm, optional, several, text, version } from '../query.ts'

/** A period of more is refused: no fiscal year is longer. */
const periodMonthsMax = 24

const formats: readonly ExportFormat[] = ['JSON', 'TRA']

/** One of these, in any letter case: a pattern of the document has no flag to say so. */
const formatPattern = new RegExp(`^(${formats.map((word) => word.replace(/./g, bothCases)).join('|')})$`)

function bothCases(capital: string): string {
  return `[${capital}${capital.toLowerCase()}]`
}

const format = text()
  .regex(formatPattern, `must be ${formats.join(' or ')}`)
  .transform((given) => given.toUpperCase() as ExportFormat)
  .openapi({
    description: `${formats.join(' or ')}, in any letter case. TRA: a whole folder, a fiscal year, a period, or some journals of these`,
    example: 'JSON',
  })

const ofTra = (what: string) => ({ description: `${what}; with TRA alone` })

export const fullExportQuery = z
  .strictObject({
    version,
    accountingFolderId,
    format,
    idExercice: optional(id).openapi(ofTra('The fiscal year; or a period in its place')),
    startDate: optional(date).openapi(ofTra('With endDate')),
    endDate: optional(date).openapi(ofTra(`Inclusive; less than ${periodMonthsMax} months after startDate`)),
    journalIds: several(id)
      .optional()
      .openapi({ type: 'array', items: idForm, minItems: 1, ...ofTra('Journals to restrict to') }),
  })
  .superRefine(
    (query, context) => {
      for (const { parameter, message } of formatIssues(query))
        context.addIssue({ code: 'custom', path: [parameter], message })
    },
    { when: () => true },
  )

export type FullExportQuery = z.output<typeof fullExportQuery>

/** What is wrong with the parameters together. Single ones may be wrong too: all mistakes are told at once. */
function formatIssues(query: object): Issue[] {
  const { format: given, idExercice, startDate, endDate, journalIds } = query as Record<string, unknown>
  const parsed = format.safeParse(given)
  if (!parsed.success) return []
  if (parsed.data === 'JSON')
    return Object.entries({ idExercice, startDate, endDate, journalIds })
      .filter(([, value]) => value !== undefined)
      .map(([parameter]) => ({ parameter, message: 'can be given with format TRA only' }))
  return periodIssues(idExercice, startDate, endDate)
}

function periodIssues(idExercice: unknown, startDate: unknown, endDate: unknown): Issue[] {
  if (idExercice !== undefined)
    return Object.entries({ startDate, endDate })
      .filter(([, value]) => value !== undefined)
      .map(([parameter]) => ({ parameter, message: 'cannot be combined with idExercice' }))
  if (startDate === undefined && endDate === undefined) return []
  if (startDate === undefined) return [{ parameter: 'startDate', message: 'is required with endDate' }]
  if (endDate === undefined) return [{ parameter: 'endDate', message: 'is required with startDate' }]
  const [start, end] = [date.safeParse(startDate), date.safeParse(endDate)]
  if (!start.success || !end.success) return []
  if (end.data < start.data) return [{ parameter: 'endDate', message: 'must not lie before startDate' }]
  if (spansMonths(start.data, end.data, periodMonthsMax))
    return [{ parameter: 'endDate', message: `must lie less than ${periodMonthsMax} months after startDate` }]
  return []
}

export const statusQuery = z.strictObject({
  version: optional(version),
  accountingFolderId,
  exportId: text()
    .min(1, 'is required')
    .openapi({ example: `export_${'0'.repeat(32)}` }),
})
