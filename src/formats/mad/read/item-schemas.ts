/**
 * The items of a MAD file (docs/spec/resources.md): the counterpart of what this folder writes. They read a file, with
 * texts, days and amounts checked; amounts become minor units, from the digits of the text. They also document answers
 * (http/schemas): `meta` says how, in place of checks that only files need.
 */
import { z } from 'zod'
import {
  day,
  dayOrNull,
  decimal,
  filledList,
  id,
  list,
  money,
  NamedAccount,
  object,
  oneOf,
  text,
  textOrNull,
} from '../../items/values.ts'
import { JsonNumber } from '../../minor-units.ts'
import { sourceCodes } from '../../rows.ts'
import type { Json } from './json-items.ts'

const attachments = z
  .record(
    text,
    object({ type: z.literal('URL', 'URL is expected'), value: text }),
    'an object of files is expected',
  )
  .meta({ description: 'File name to address' })

export const movement = object({
  producerId: id,
  description: text,
  dueDate: dayOrNull,
  freeNumber: textOrNull,
  invoiceNumber: text,
  value: object({
    credit: money,
    debit: money,
    amount: money.meta({ description: 'Credit minus debit' }),
  }),
  attachments,
  account: NamedAccount,
  payment: object({ producerId: id, name: text, code: text }).nullable(),
  analytics: list(
    object({
      producerId: id,
      code: text,
      name: text,
      sections: filledList(
        object({
          producerId: id,
          amount: money,
          rate: decimal(4, 'a percentage with at most four decimals').meta({
            description: 'Percentage',
            example: 100,
          }),
          code: text,
          name: text,
        }),
      ),
    }),
  ),
  lettering: object({ state: oneOf(['none', 'partial', 'complete']), value: textOrNull }),
})

/** What partners attach is any JSON. jsonb stores numbers exactly, written out in full: `1e9` takes ten digits. */
const anyJson = z.unknown().superRefine((value, context) => {
  const problem = problemOfJson(value as Json)
  if (problem !== undefined) context.addIssue({ code: 'custom', ...problem })
})

/** The member `additionalProducerProperties` of an entry. */
export const entryProperties = object({
  source: object({
    name: oneOf(sourceCodes).meta({ type: 'string' }),
    thirdParty: object({ name: text, code: text }).nullable(),
  }),
  partnerMetadata: object({ partnerId: text, json: anyJson }).nullable(),
  comment: textOrNull,
  createdAt: decimal(0, 'a whole number of seconds', 'integer')
    .refine(
      (seconds) => seconds >= -62_000_000_000n && seconds < 253_402_300_800n,
      'seconds since 1970, up to the year 9999, are expected',
    )
    .meta({ description: 'Epoch seconds' }),
  accountedAt: day,
  validationDate: dayOrNull.meta({ description: 'Null: awaiting validation' }),
})

export const entry = object({
  producerId: id,
  attachments,
  date: day,
  dueDate: dayOrNull,
  journal: object({ producerId: id, customerReferenceCode: text, name: text, type: text }),
  currency: object({
    code: z
      .string()
      .regex(/^[A-Z]{3}$/, 'a currency of three capitals is expected')
      .meta({ type: 'string', example: 'EUR' }),
    rate: decimal(6, 'a rate with at most six decimals')
      .refine((rate) => rate < 10n ** 18n && rate > -(10n ** 18n), 'a rate below 10^12 is expected')
      .meta({ description: 'Only if the currency is not that of the folder' })
      .optional(),
  }),
  movements: list(movement),
  additionalProducerProperties: entryProperties,
})

/** The rest tells of the export, not of the ledger. */
export const metadata = z.looseObject({ version: text }, 'an object is expected')

export type FileEntry = z.output<typeof entry>
export type FileMovement = z.output<typeof movement>

interface JsonProblem {
  path: (string | number)[]
  message: string
  input: unknown
}

/** The first thing in it that the database cannot store. */
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
