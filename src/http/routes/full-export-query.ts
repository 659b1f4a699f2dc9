/** Parameters of the full export (docs/spec/exports.md#full-exports). */
import { z } from '@hono/zod-openapi'
import type { Issue } from '../../../packages/contract/src/error-codes.ts'
import { offeredFormats } from '../../exports/offered-formats.ts'
import {
  compressionNames,
  type FileFormat,
  type FileFormatFacts,
  type FormatParameter,
  fileFormatNames,
  fileFormats,
  formatOptions,
  formatParameters,
} from '../../formats/file-formats.ts'
import {
  accountingFolderId,
  checkedTogether,
  date,
  type Given,
  id,
  idSchema,
  listed,
  oneOf,
  optional,
  several,
  text,
  version,
} from '../query.ts'
import { periodIssues } from './movements-query.ts'

/** Longer periods are refused: no fiscal year is longer. */
const periodMonthsMax = 24

const format = oneOf(offeredFormats).openapi({ example: 'JSON' })

/** For the description of a parameter, and for its refusal. */
function takenBy(parameter: FormatParameter): string {
  const names = offeredFormats.filter((name) => factsOf(name).takes.includes(parameter))
  return `only with ${listed(names)}`
}

function factsOf(name: FileFormat): FileFormatFacts {
  return fileFormats[name]
}

const described = (parameter: FormatParameter, what: string) => {
  const names = offeredFormats.filter((name) => factsOf(name).requires.includes(parameter))
  const required = names.length === 0 ? '' : `; required with ${listed(names)}`
  return { description: `${what}; ${takenBy(parameter)}${required}` }
}

const option = <Option extends keyof typeof formatOptions>(parameter: Option, what: string) =>
  optional(oneOf<(typeof formatOptions)[Option]>(formatOptions[parameter])).openapi(
    described(parameter, what),
  )

export const fullExportQuery = checkedTogether(
  z.strictObject({
    version,
    accountingFolderId,
    format,
    compression: optional(oneOf(compressionNames)).openapi({
      description: 'The file is compressed',
      example: 'zstd',
    }),
    idExercice: optional(id).openapi(described('idExercice', 'The fiscal year, instead of a period')),
    startDate: optional(date).openapi(described('startDate', 'With endDate')),
    endDate: optional(date).openapi(
      described('endDate', `Inclusive; less than ${periodMonthsMax} months after startDate`),
    ),
    journalIds: several(id)
      .optional()
      .openapi({
        type: 'array',
        items: idSchema,
        minItems: 1,
        ...described('journalIds', 'Journals to restrict to'),
      }),
    encoding: option('encoding', 'UTF-8 instead of ISO 8859-15'),
    columns: option('columns', 'The further columns of the imported file too'),
  }),
  formatIssues,
)

export type FullExportQuery = z.output<typeof fullExportQuery>

function formatIssues(given: Given): Issue[] {
  const parsed = format.safeParse(given['format'])
  if (!parsed.success) return notOffered(given['format'])
  const { takes, requires } = factsOf(parsed.data)
  const refused = formatParameters
    .filter((parameter) => given[parameter] !== undefined && !takes.includes(parameter))
    .map((parameter) => ({ parameter, message: `is allowed ${takenBy(parameter)}` }))
  const missing = requires
    .filter((parameter) => given[parameter] === undefined)
    .map((parameter) => ({ parameter, message: `is required with format ${parsed.data}` }))
  if (refused.length > 0 || missing.length > 0) return [...refused, ...missing]
  const ofPeriod = ['startDate', 'endDate']
  return periodIssues(given, { monthsMax: periodMonthsMax, isRequired: false, ofPeriod })
}

function notOffered(given: unknown): Issue[] {
  const name = fileFormatNames.find((each) => each === String(given).toUpperCase())
  const message = `${name} is not offered: this service runs without the package that writes it`
  return name === undefined ? [] : [{ parameter: 'format', message }]
}

export const statusQuery = z.strictObject({
  version: optional(version),
  accountingFolderId,
  exportId: text()
    .min(1, 'is required')
    .openapi({ example: `export_${'0'.repeat(32)}` }),
})
