/** Parameters of the full export (interface, sections 4.1 and 4.2; contract, section 3). */
import { z } from '@hono/zod-openapi'
import type { Issue } from '../../errors.ts'
import { type FileFormat, fileFormatNames, fileFormats } from '../../formats/file-formats.ts'
import { accountingFolderId, date, id, idForm, optional, several, text, version } from '../query.ts'
import { periodIssues } from './period-query.ts'

/** A period of more is refused: no fiscal year is longer. */
const periodMonthsMax = 24

/** One of these, in any letter case: a pattern of the document has no flag to say so. */
const formatPattern = new RegExp(
  `^(${fileFormatNames.map((word) => word.replace(/./g, bothCases)).join('|')})$`,
)

const listed = fileFormatNames.join(' or ')

/** Those that take more than a whole folder. */
const selective = fileFormatNames.filter((name) => fileFormats[name].covers === 'selection').join(' or ')

function bothCases(capital: string): string {
  return `[${capital}${capital.toLowerCase()}]`
}

const format = text()
  .regex(formatPattern, `must be ${listed}`)
  .transform((given) => given.toUpperCase() as FileFormat)
  .openapi({
    description: `${listed}, in any letter case. ${selective}: a whole folder, a fiscal year, a period, or some journals of these`,
    example: 'JSON',
  })

const ofSelective = (what: string) => ({ description: `${what}; with ${selective} alone` })

export const fullExportQuery = z
  .strictObject({
    version,
    accountingFolderId,
    format,
    idExercice: optional(id).openapi(ofSelective('The fiscal year; or a period in its place')),
    startDate: optional(date).openapi(ofSelective('With endDate')),
    endDate: optional(date).openapi(
      ofSelective(`Inclusive; less than ${periodMonthsMax} months after startDate`),
    ),
    journalIds: several(id)
      .optional()
      .openapi({ type: 'array', items: idForm, minItems: 1, ...ofSelective('Journals to restrict to') }),
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
  if (fileFormats[parsed.data].covers === 'folder')
    return Object.entries({ idExercice, startDate, endDate, journalIds })
      .filter(([, value]) => value !== undefined)
      .map(([parameter]) => ({ parameter, message: `can be given with format ${selective} only` }))
  return periodIssues(query, {
    monthsMax: periodMonthsMax,
    isRequired: false,
    ofPeriod: ['startDate', 'endDate'],
  })
}

export const statusQuery = z.strictObject({
  version: optional(version),
  accountingFolderId,
  exportId: text()
    .min(1, 'is required')
    .openapi({ example: `export_${'0'.repeat(32)}` }),
})
