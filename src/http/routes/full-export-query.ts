/** Parameters of the full export (docs/spec/exports.md#full-exports). */
import { z } from '@hono/zod-openapi'
import type { Issue } from '../../errors.ts'
import { type FileFormat, fileFormatNames, fileFormats } from '../../formats/file-formats.ts'
import { accountingFolderId, date, id, idSchema, optional, several, text, version } from '../query.ts'
import { periodIssues } from './period-query.ts'

/** Longer periods are refused: no fiscal year is longer. */
const periodMonthsMax = 24

/** One of the formats in any letter case, spelled out because a pattern in OpenAPI has no flags. */
const formatPattern = new RegExp(
  `^(${fileFormatNames.map((word) => word.replace(/./g, bothCases)).join('|')})$`,
)

const listed = fileFormatNames.join(' or ')

/** The formats that can hold a selection and not only a whole folder. */
const selective = fileFormatNames.filter((name) => fileFormats[name].covers === 'selection').join(' or ')

function bothCases(capital: string): string {
  return `[${capital}${capital.toLowerCase()}]`
}

const format = text()
  .regex(formatPattern, `must be ${listed}`)
  .transform((given) => given.toUpperCase() as FileFormat)
  .openapi({
    description: `${listed}, in any letter case. ${selective}: a whole folder, a fiscal year or a period, or some of its journals`,
    example: 'JSON',
  })

const ofSelective = (what: string) => ({ description: `${what}; only with ${selective}` })

export const fullExportQuery = z
  .strictObject({
    version,
    accountingFolderId,
    format,
    idExercice: optional(id).openapi(ofSelective('The fiscal year; alternatively, a period')),
    startDate: optional(date).openapi(ofSelective('With endDate')),
    endDate: optional(date).openapi(
      ofSelective(`Inclusive; less than ${periodMonthsMax} months after startDate`),
    ),
    journalIds: several(id)
      .optional()
      .openapi({ type: 'array', items: idSchema, minItems: 1, ...ofSelective('Journals to restrict to') }),
  })
  .superRefine(
    (query, context) => {
      for (const { parameter, message } of formatIssues(query))
        context.addIssue({ code: 'custom', path: [parameter], message })
    },
    { when: () => true },
  )

export type FullExportQuery = z.output<typeof fullExportQuery>

/**
 * Problems of the parameters together. Runs even if single ones are invalid, so that all problems are reported at
 * once.
 */
function formatIssues(query: object): Issue[] {
  const { format: given, idExercice, startDate, endDate, journalIds } = query as Record<string, unknown>
  const parsed = format.safeParse(given)
  if (!parsed.success) return []
  if (fileFormats[parsed.data].covers === 'folder')
    return Object.entries({ idExercice, startDate, endDate, journalIds })
      .filter(([, value]) => value !== undefined)
      .map(([parameter]) => ({ parameter, message: `is allowed only with format ${selective}` }))
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
