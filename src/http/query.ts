/**
 * The parts that query schemas are made of. What they say of a wrong value becomes `details.issues`; a value that is
 * given twice arrives as an array, and only `several` takes one.
 */
import { z } from '@hono/zod-openapi'
import { idPattern, notAnId, readId } from '../db/id.ts'
import { AppError, type Issue } from '../errors.ts'

/** Versions of the interface that are answered. */
export const versions = ['1.0.0']

const unsupportedVersion = 'unsupported-version'

/** Text of a parameter that is given once. */
export function text() {
  return z.string({ error: ({ input }) => (input === undefined ? 'is required' : 'may be given only once') })
}

/**
 * A parameter that may be left out, or given without a value, as generated clients do (contract, section 1). `draft` and
 * filters of several values are not of this kind.
 */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  return z
    .preprocess((given) => (given === '' ? undefined : given), schema.optional())
    .optional()
    .openapi({ param: { allowEmptyValue: true } })
}

/** Required on every mad route. */
export const version = text()
  .superRefine((value, context) => {
    if (!/^\d{1,9}\.\d{1,9}\.\d{1,9}$/.test(value))
      context.addIssue({ code: 'custom', message: 'must be three numbers separated by dots, such as 1.0.0' })
    else if (!versions.includes(value))
      context.addIssue({ code: 'custom', message: 'is not supported', params: { kind: unsupportedVersion } })
  })
  .openapi({ type: 'string', enum: versions, description: 'Version of the format', example: '1.0.0' })

/** An id as the document of the API describes it, where the library cannot tell by itself. */
export const idSchema = { type: 'string', pattern: idPattern.source } as const

/** Comes out without leading zeros. */
export const id = text()
  .regex(idPattern, notAnId)
  .transform((digits) => readId(digits)!)
  .openapi({ ...idSchema, example: '1000' })

/** The year 0 does not exist, and PostgreSQL refuses it. */
const datePattern = /^(?!0000)\d{4}-\d{2}-\d{2}$/

/** `YYYY-MM-DD`, a day that exists. */
export const date = text()
  .refine((value) => datePattern.test(value) && z.iso.date().safeParse(value).success, {
    message: 'must be a date that exists, written YYYY-MM-DD',
  })
  .openapi({ type: 'string', format: 'date', pattern: datePattern.source, example: '2026-01-31' })

/** One of these words, exactly. */
export function oneOf<const Words extends readonly [string, ...string[]]>(words: Words) {
  return z.enum(words, {
    error: ({ input }) => {
      if (input === undefined) return 'is required'
      return Array.isArray(input) ? 'may be given only once' : `must be ${listed(words)}`
    },
  })
}

/**
 * Values repeated (`a=1&a=2`), separated by commas (`a=1,2`), or both; blanks around them and empty ones are dropped.
 * @param item schema of one value; what it says of a value is said of the parameter
 */
export function several<Item extends z.ZodType<unknown, string>>(item: Item) {
  const values = z
    .union([z.string(), z.array(z.string())])
    .transform((given) => [given].flat().flatMap((part) => part.split(',').map((value) => value.trim())))
    .transform((parts) => parts.filter((part) => part !== ''))
  return values.pipe(z.array(item).min(1, 'must name at least one value'))
}

/** The folder, on mad routes: in place of the header society-id, or beside it and in agreement with it. */
export const accountingFolderId = optional(id)

/** The folder that the query names, before it is validated as a whole. */
export function readAccountingFolderId(given: string[] | undefined): string | 'malformed' | undefined {
  const parsed = accountingFolderId.safeParse(given?.length === 1 ? given[0] : given)
  return parsed.success ? parsed.data : 'malformed'
}

/**
 * All that is wrong with a query, undefined where nothing is. A version that is not spoken comes first: it decides
 * what the rest would mean.
 * @param url as it was sent: parameters whose percent-encoding is broken are only seen there
 * @param folderNamesDisagree the query names another folder than the header
 * @param error of the schema, where it found something
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
 * Names of parameters whose percent-encoding is broken, in the query of a URL as it was sent. The router would pass
 * them on undecoded, and a filter on garbage selects garbage.
 */
function malformedParameters(url: string): string[] {
  const query = url.split('#', 1)[0]?.split('?').slice(1).join('?') ?? ''
  return query
    .split('&')
    .filter((part) => !decodes(part))
    .map((part) => part.split('=', 1)[0] ?? '')
}

/** Ends a value and stands for itself, as the router takes it: roots are written as in SQL, `classAccount=60%`. */
const lonePercent = /%(?=,|$)/g

function decodes(part: string): boolean {
  try {
    decodeURIComponent(part.replace(lonePercent, ''))
    return true
  } catch (error) {
    if (error instanceof URIError) return false
    throw error
  }
}

function listed(words: readonly string[]): string {
  return words.length === 1 ? String(words[0]) : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}
