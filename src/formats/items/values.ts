/**
 * The values that items consist of (docs/spec/resources.md). Each describes what a MAD file may hold at its place, and
 * what the document of the API says of it. `meta({ type })` replaces the checks of a value in that document, because
 * only imports make these checks; after `nullable()` the type must name null.
 */
import { z } from 'zod'
import { JsonNumber, unitsMax } from '../minor-units.ts'

/** Refuses two things that cannot be stored: NUL, in PostgreSQL; and half of a surrogate pair, in UTF-8. */
export const text = z
  .string('a text is expected')
  .refine(
    (value) => !value.includes('\0') && value.isWellFormed(),
    'a text without NUL and half characters is expected',
  )
export const textOrNull = text.nullable()

/** The limit is due to indexes of PostgreSQL, whose entries have at most 2,704 bytes. */
export const code = text.max(255, 'a code of at most 255 characters is expected').meta({ type: 'string' })

/** An id below 2^53 (docs/spec/interface.md#values). */
const digits = z
  .string('an id is expected: digits in quotation marks')
  .regex(/^[1-9]\d{0,15}$/, { error: 'an id is expected: 1 to 16 digits, not 0', abort: true })
  .refine((value) => Number.isSafeInteger(Number(value)), 'an id below 9007199254740992 is expected')
export const id = digits.meta({ type: 'string', example: '123456' })
/** The id of an item that may be unknown. */
export const idOrNull = digits.nullable().meta({ type: ['string', 'null'] })

export const day = z.iso
  .date({ error: 'a day is expected: YYYY-MM-DD', abort: true })
  .refine((value) => value > '0001', 'a year from 1 on is expected')
export const dayOrNull = day.nullable()

/** A SIREN or a SIRET. */
export const siren = z
  .string('a text is expected')
  .regex(/^(?:\d{9}|\d{14})$/, 'a SIREN of 9 or a SIRET of 14 digits is expected')
  .nullable()
  .meta({ type: ['string', 'null'] })

/** Converts digits to whole units. Undefined if they have further decimals, an exponent or too many digits. */
function units(digits: string, decimals: number): bigint | undefined {
  const match = /^(-?\d{1,19})(?:\.(\d+))?$/.exec(digits)
  if (match === null) return undefined
  const [, whole = '', fraction = ''] = match
  if (/[1-9]/.test(fraction.slice(decimals))) return undefined
  const read = BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, '0'))
  return read > unitsMax || read < -unitsMax ? undefined : read
}

/** A decimal number, read into units of its last decimal. */
export const decimal = (decimals: number, what: string, type: 'number' | 'integer' = 'number') =>
  z
    .instanceof(JsonNumber, { error: `${what} is expected, as a number` })
    .transform((number, context) => {
      const read = units(number.text, decimals)
      if (read !== undefined) return read
      context.issues.push({
        code: 'custom',
        message: `${what} is expected, in full digits`,
        input: number.text,
      })
      return z.NEVER
    })
    .meta({ type })

export const amount = decimal(2, 'an amount with at most two decimals')
export const money = amount.meta({ example: 264.44 })

export const object = <Shape extends z.core.$ZodLooseShape>(shape: Shape) =>
  z.object(shape, 'an object is expected')
/** @param id the name of the shape in the document of the API; generators make a class of it */
export const named = <Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) =>
  object(shape).meta({ id })
export const list = <Item extends z.ZodType>(item: Item) => z.array(item, 'a list is expected')
export const filledList = <Item extends z.ZodType>(item: Item) =>
  list(item).refine((items) => items.length > 0, 'at least one item is expected')
export const boolean = z.boolean('true or false is expected')
export const oneOf = <const Values extends readonly string[]>(values: Values) =>
  z.enum(values, `one of ${values.join(', ')} is expected`)

/**
 * An object whose nullable members may be absent in files of other programs. An absent member means null
 * (docs/spec/imports.md#mad-files).
 */
export function sparse<Schema extends z.ZodObject>(
  schema: Schema,
): z.ZodType<z.output<Schema>, z.input<Schema>> {
  const nullable = Object.keys(schema.shape).filter((name) => schema.shape[name].safeParse(null).success)
  const absent = Object.fromEntries(nullable.map((name) => [name, null]))
  const isObject = (given: unknown) => typeof given === 'object' && given !== null && !Array.isArray(given)
  return z.preprocess(
    (given) => (isObject(given) ? { ...absent, ...(given as object) } : given),
    schema,
  ) as never
}

/** An account as another item names it. */
export const NamedAccount = named('SimplifiedAccount', { producerId: id, number: text, name: text })
export type SimplifiedAccount = z.output<typeof NamedAccount>

/** Any JSON that the database can store. Partners attach it to entries. */

export type JsonObject = { [member: string]: Json }
export type Json = null | boolean | string | JsonNumber | Json[] | JsonObject

/** jsonb stores numbers exactly, written out in full: `1e9` takes ten digits. */
export const anyJson = z.unknown().superRefine((value, context) => {
  const problem = problemOfJson(value as Json)
  if (problem !== undefined) context.addIssue({ code: 'custom', ...problem })
})

interface JsonProblem {
  path: (string | number)[]
  message: string
  input: unknown
}

/** The first part of a value that the database cannot store. */
function problemOfJson(value: Json, path: (string | number)[] = []): JsonProblem | undefined {
  if (value instanceof JsonNumber)
    return /^-?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?$/.test(value.text)
      ? undefined
      : {
          path,
          message: 'a number of at most 300 digits and an exponent of 3 is expected',
          input: value.text,
        }
  if (typeof value === 'string') {
    const message = text.safeParse(value).error?.issues[0]?.message
    return message === undefined ? undefined : { path, message, input: value }
  }
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const below = [...path, Array.isArray(value) ? Number(key) : key]
    const problem = problemOfJson(key, below) ?? problemOfJson(inner, below)
    if (problem !== undefined) return problem
  }
  return undefined
}
