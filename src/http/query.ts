/**
 * Building blocks of query schemas. Their messages become `details.issues`. A parameter sent twice arrives as an array,
 * which only `several` accepts.
 */
import { z } from '@hono/zod-openapi'
import type { Issue } from '../../packages/contract/src/error-codes.ts'
import { idPattern, notAnId, readId } from '../db/literal.ts'
import { AppError } from '../errors.ts'

/** Supported versions of the interface. */
const versions = ['1.0.0']

const unsupportedVersion = 'unsupported-version'

/** The text of a parameter that may be sent only once. */
export function text() {
  return z.string({ error: ({ input }) => (input === undefined ? 'is required' : 'may be given only once') })
}

/**
 * A parameter that may be absent or empty; generated clients send empty ones (docs/spec/interface.md#parameters).
 * `draft` and filters with several values do not use this.
 */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return z
    .preprocess((given) => (given === '' ? undefined : given), schema.optional())
    .optional()
    .openapi({ param: { allowEmptyValue: true } })
}

/** The version of the interface, required on every mad route. */
export const version = text()
  .superRefine((value, context) => {
    if (!/^\d{1,9}\.\d{1,9}\.\d{1,9}$/.test(value))
      context.addIssue({ code: 'custom', message: 'must be three numbers separated by dots, such as 1.0.0' })
    else if (!versions.includes(value))
      context.addIssue({ code: 'custom', message: 'is not supported', params: { kind: unsupportedVersion } })
  })
  .meta({ type: 'string', const: versions[0], description: 'Version of the format', example: '1.0.0' })

/** How the OpenAPI document describes an id, for schemas that the library cannot describe. */
export const idSchema = { type: 'string', pattern: idPattern.source } as const

/** A range of entry ids, both ends included. */
export const rangeSchema = {
  type: 'array' as const,
  items: idSchema,
  minItems: 2,
  maxItems: 2,
  example: ['0', '8191'],
}

/** A whole number within bounds, in decimal digits. */
export function wholeNumber(least: number, most: number) {
  const message = `must be a whole number from ${least} to ${most}`
  return text()
    .regex(/^\d{1,16}$/, message)
    .transform(Number)
    .refine((number) => number >= least && number <= most, message)
    .openapi({ type: 'integer', minimum: least, maximum: most })
}

/** How many seconds a request may be held until there is something new. */
export const wait = optional(
  wholeNumber(0, 30).openapi({ description: 'Seconds to wait for something new. Default: 0' }),
)

/** An id, without leading zeros. */
export const id = text()
  .regex(idPattern, notAnId)
  .transform((digits) => readId(digits)!)
  .openapi({ ...idSchema, example: '1000' })

/** Matches no year 0: it does not exist, and PostgreSQL refuses it. */
const datePattern = /^(?!0000)\d{4}-\d{2}-\d{2}$/

/** A day that exists, as `YYYY-MM-DD`. */
export const date = text()
  .refine((value) => datePattern.test(value) && z.iso.date().safeParse(value).success, {
    message: 'must be a date that exists, written YYYY-MM-DD',
  })
  .openapi({ type: 'string', format: 'date', pattern: datePattern.source, example: '2026-01-31' })

/** One of these words, in any letter case. The document of the API lists the words as they are. */
export function oneOf<const Words extends readonly string[]>(words: Words) {
  const word = z.enum(words, {
    error: ({ input }) => {
      if (input === undefined) return 'is required'
      return Array.isArray(input) ? 'may be given only once' : `must be ${listed(words)}`
    },
  })
  return z.preprocess((given) => wordOf(words, given) ?? given, word)
}

/** Returns the word of the list that equals the given one in any letter case; undefined if there is none. */
export function wordOf<Word extends string>(words: readonly Word[], given: unknown): Word | undefined {
  const folded = typeof given === 'string' ? given.toLowerCase() : undefined
  return words.find((word) => word.toLowerCase() === folded)
}

/**
 * Several values: repeated (`a=1&a=2`), separated by commas (`a=1,2`), or both. Surrounding blanks and empty values are
 * dropped.
 * @param item schema of one value; its message is reported for the whole parameter
 */
export function several<Item extends z.ZodType<unknown, string>>(item: Item) {
  const values = z
    .union([z.string(), z.array(z.string())])
    .transform((given) => [given].flat().flatMap((part) => part.split(',').map((value) => value.trim())))
    .transform((parts) => parts.filter((part) => part !== ''))
  return values.pipe(z.array(item).min(1, 'must name at least one value'))
}

/** A query as sent, or only those of its parameters that are valid. */
export type GivenQuery = Readonly<Record<string, unknown>>

/**
 * Checks the parameters of a query together, even if single ones are invalid, so that all problems are reported at
 * once.
 */
export function checkedTogether<Query extends z.ZodObject>(
  query: Query,
  issuesOf: (given: GivenQuery) => Issue[],
): Query {
  const check = (given: GivenQuery, context: z.RefinementCtx) => {
    for (const { parameter, message } of issuesOf(given))
      context.addIssue({ code: 'custom', path: [parameter], message })
  }
  return query.superRefine(check, { when: () => true })
}

export function ids(described: { description: string }) {
  return several(id)
    .optional()
    .openapi({ type: 'array', items: idSchema, minItems: 1, ...described })
}

/** The folder id in the query of mad routes: replaces the header society-id, or equals it. */
export const accountingFolderId = optional(id).openapi({
  description: 'The folder, instead of the header society-id',
})

/** Reads the folder that the query names, before the whole query is validated. */
export function readAccountingFolderId(given: string[] | undefined): string | 'malformed' | undefined {
  const parsed = accountingFolderId.safeParse(given?.length === 1 ? given[0] : given)
  return parsed.success ? parsed.data : 'malformed'
}

/**
 * Returns every problem of a query; undefined if it is valid. An unsupported version comes first, because it decides
 * what the rest would mean.
 * @param url as sent: only there broken percent-encoding is visible
 * @param folderNamesDisagree whether the query names another folder than the header
 * @param error what the schema found, if it found a problem
 */
export function queryError(
  url: string,
  folderNamesDisagree: boolean,
  error: z.ZodError | undefined,
): AppError | undefined {
  const found = error?.issues ?? []
  if (found.some((issue) => issue.code === 'custom' && issue.params?.['kind'] === unsupportedVersion))
    return new AppError('ERR-UNSUPPORTED-VERSION', {
      message: `This version is not supported; supported: ${versions.join(', ')}`,
    })
  const malformed = malformedParameters(url).map((parameter) => ({
    parameter,
    message: 'must be percent-encoded UTF-8',
  }))
  const disagreement: Issue[] = folderNamesDisagree
    ? [{ parameter: 'accountingFolderId', message: 'must name the same folder as the header society-id' }]
    : []
  const issues = [...malformed, ...disagreement, ...found.flatMap(issuesOf)]
  return issues.length === 0 ? undefined : new AppError('ERR-VALIDATION', { issues })
}

function issuesOf(issue: z.core.$ZodIssue): Issue[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ parameter: key, message: 'is not a parameter of this route' }))
  return [{ parameter: String(issue.path[0] ?? 'query'), message: issue.message }]
}

/**
 * Returns the names of parameters whose percent-encoding is broken, from the query of a URL as sent. The router would
 * pass these parameters on undecoded, and a filter on garbage selects garbage.
 */
function malformedParameters(url: string): string[] {
  const query = url.split('#', 1)[0]?.split('?').slice(1).join('?') ?? ''
  return query
    .split('&')
    .filter((part) => !decodes(part))
    .map((part) => part.split('=', 1)[0] ?? '')
}

/**
 * Matches a `%` at the end of a value. The router, too, takes it literally: roots are written as in SQL,
 * `classAccount=60%`.
 */
const lonePercent = /%(?=,|$)/g

function decodes(part: string): boolean {
  try {
    decodeURIComponent(part.replace(lonePercent, ''))
    return true
  } catch {
    return false
  }
}

export function listed(words: readonly string[]): string {
  return words.length === 1 ? String(words[0]) : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}
