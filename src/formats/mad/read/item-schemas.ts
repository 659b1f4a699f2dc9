/**
 * The items of a MAD file (docs/spec/resources.md): the counterpart of what this folder writes. They read a file, with
 * texts, days and amounts checked; amounts become minor units, from the digits of the text. They also document answers
 * (http/schemas): `meta` says how, in place of checks that only files need.
 */
import { z } from 'zod'
import {
  boolean,
  code,
  day,
  dayOrNull,
  decimal,
  filledList,
  id,
  list,
  money,
  object,
  oneOf,
  siren,
  text,
  textOrNull,
} from '../../items/values.ts'
import { JsonNumber } from '../../minor-units.ts'
import { paymentModes } from '../../payment.ts'
import type { Address } from '../../rows.ts'
import { sourceCodes } from '../../rows.ts'
import { journalTypeLabels } from '../collections/journal.ts'
import type { Json } from './json-items.ts'

const textIfAny = textOrNull.default(null)
const account = object({ producerId: id, number: text, name: text })
const accountOrNull = account.nullable()

const address = object({
  addressNumber: textIfAny,
  addressComplement: textIfAny,
  postalCode: textIfAny,
  streetName: textIfAny,
  streetType: textIfAny,
  locatingIndex: textIfAny,
  fullName: textIfAny,
  fullname: textIfAny,
  city: textIfAny,
  country: textIfAny,
}).superRefine(({ fullName, fullname }, context) => {
  if (fullName === null || fullname === null || fullName === fullname) return
  const message = `fullName is "${fullName.slice(0, 60)}": both spellings mean the same, give one of them`
  context.addIssue({ code: 'custom', path: ['fullname'], message, input: fullname })
})

export const accountingFolder = object({
  name: text,
  reference: textIfAny,
  address,
  contact: object({
    firstName: textIfAny,
    lastName: textIfAny,
    phoneNumber: textIfAny,
    mobilePhoneNumber: textIfAny,
    mail: textIfAny,
  }),
  RCS: object({ producerId: text, name: text }),
  SIRET: siren.default(null),
  capital: money,
})

export const paymentItem = object({
  producerId: id,
  name: text,
  code: text,
  additionalProducerProperties: object({ code: oneOf(Object.keys(paymentModes)) }),
})

const journal = object({ producerId: id, customerReferenceCode: text, name: text, type: text })

export const bank = object({
  producerId: id,
  RIB: textOrNull,
  IBAN: text,
  BIC: text,
  account: accountOrNull,
  journal: object({ ...journal.shape, type: z.literal('BANQUE', 'BANQUE is expected') }),
  additionalProducerProperties: object({ isDefault: boolean }),
})

export const journalItem = object({
  producerId: id,
  name: text,
  customerReferenceCode: code,
  type: text,
  counterpartAccount: accountOrNull,
  additionalProducerProperties: object({
    type: oneOf(Object.keys(journalTypeLabels) as (keyof typeof journalTypeLabels)[]),
    locked: boolean,
  }),
})

const payment = object({ producerId: id, code: text }).nullable()
const contact = object({
  firstname: textOrNull,
  lastname: textOrNull,
  phoneNumber: textOrNull,
  role: textOrNull,
  email: textOrNull,
})
const miscellaneous = { referent: textOrNull, language: textOrNull, group: textOrNull, archived: boolean }
const party = { payment, address: address.nullable(), IBANs: list(text), contacts: list(contact) }

const company = object({
  name: text,
  SIREN: siren,
  CEO: textOrNull,
  ape: object({ producerId: textOrNull, code: textOrNull, name: textOrNull }).nullable(),
  vat: object({
    producerId: id,
    customerReferenceCode: code,
    rate: decimal(2, 'a rate with at most two decimals').refine(
      (rate) => rate >= 0n && rate <= 10_000n,
      'a rate from 0 to 100 is expected',
    ),
  }).nullable(),
  miscellaneous: object(miscellaneous).nullable(),
  ...party,
})

const employee = object({
  firstName: textOrNull,
  lastName: textOrNull,
  email: textOrNull,
  phoneNumber: textOrNull,
  phoneNumberBis: textOrNull,
  NIR: textOrNull,
  profession: textOrNull,
  miscellaneous: object({ ...miscellaneous, doubtfulAccount: accountOrNull }).nullable(),
  ...party,
})

const accountHead = {
  producerId: id,
  number: text.regex(/^[0-9A-Z]{1,40}$/, 'an account number is expected: 1 to 40 digits and capitals'),
  name: text,
  closed: boolean,
}

/** By the kind of party that the root of the number means (formats/party-kind.ts). */
export const accountItems = {
  general: object({
    ...accountHead,
    counterpartAccount: accountOrNull,
    correspondanceAccount: accountOrNull,
  }),
  company: object({ ...accountHead, counterpartAccount: accountOrNull, company }),
  employee: object({ ...accountHead, employee }),
}

export const exercice = object({
  producerId: id,
  name: text,
  period: object({
    start: day,
    end: day,
    duration: z.instanceof(JsonNumber, { error: 'a number of months is expected' }),
    closed: object({
      at: day,
      by: object({ producerId: id.nullable(), firstName: textOrNull, lastName: textOrNull }),
    }).nullable(),
  }),
  state: oneOf(['open', 'closed']),
  additionalProducerProperties: object({ lettering: oneOf(['MONO', 'MULTI']) }),
})

export const axis = object({
  producerId: id,
  code,
  name: text,
  sections: list(
    object({
      producerId: id,
      code,
      name: text,
      account: textOrNull,
      additionalProducerProperties: object({ closed: boolean }),
    }),
  ),
  additionalProducerProperties: object({ defaultSectionId: id.nullable() }),
})

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
  account,
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
  journal,
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

export type FileFolder = z.output<typeof accountingFolder>
export type FileAddress = z.output<typeof address>

/** Without the full names, which are made of the others. */
export function addressOf(address: FileAddress): Address {
  const { addressNumber, addressComplement, fullName, fullname, ...others } = address
  return { ...others, number: addressNumber, complement: addressComplement }
}

export type FileEntry = z.output<typeof entry>
export type FileMovement = z.output<typeof movement>
export type FileCompany = z.output<typeof company>
export type FileEmployee = z.output<typeof employee>

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
