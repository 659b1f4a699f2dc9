/** Items of collections for the OpenAPI document (docs/spec/resources.md). formats/mad writes the bytes. */
import { z } from '@hono/zod-openapi'

const producerId = z.string().openapi({ example: '123456' })
const text = z.string()
const textOrNull = z.string().nullable()
const date = z.iso.date()
const account = z.object({ producerId, number: text, name: text })
const accountOrNull = account.nullable()

const Address = z.object({
  addressNumber: textOrNull,
  addressComplement: textOrNull,
  postalCode: textOrNull,
  streetName: textOrNull,
  streetType: textOrNull,
  locatingIndex: textOrNull,
  fullName: textOrNull,
  fullname: textOrNull.openapi({ description: 'As fullName' }),
  city: textOrNull,
  country: textOrNull,
})

export const AccountingFolder = z
  .object({
    name: text,
    reference: textOrNull,
    address: Address,
    contact: z.object({
      firstName: textOrNull,
      lastName: textOrNull,
      phoneNumber: textOrNull,
      mobilePhoneNumber: textOrNull,
      mail: textOrNull,
    }),
    RCS: z.object({ producerId: text, name: text }),
    SIRET: textOrNull,
    capital: z.number(),
  })
  .openapi('AccountingFolder')

export const Payment = z
  .object({
    producerId,
    name: text.openapi({ example: 'Virement' }),
    code: text.openapi({ example: 'VIR' }),
    additionalProducerProperties: z.object({ code: text.openapi({ example: 'VIRT' }) }),
  })
  .openapi('Payment')

export const Bank = z
  .object({
    producerId,
    RIB: textOrNull,
    IBAN: text,
    BIC: text,
    account: accountOrNull,
    journal: z.object({ producerId, name: text, type: z.literal('BANQUE'), customerReferenceCode: text }),
    additionalProducerProperties: z.object({ isDefault: z.boolean() }),
  })
  .openapi('Bank')

export const Journal = z
  .object({
    producerId,
    name: text,
    customerReferenceCode: text,
    type: text.openapi({ example: 'Achat' }),
    counterpartAccount: accountOrNull,
    additionalProducerProperties: z.object({ type: text.openapi({ example: 'ACH' }), locked: z.boolean() }),
  })
  .openapi('Journal')

const payment = z.object({ producerId, code: text }).nullable()
const contacts = z.array(
  z.object({
    firstname: textOrNull,
    lastname: textOrNull,
    phoneNumber: textOrNull,
    role: textOrNull,
    email: textOrNull,
  }),
)
const miscellaneous = z.object({
  referent: textOrNull,
  language: textOrNull,
  group: textOrNull,
  archived: z.boolean(),
})
const accountHead = { producerId, number: text, name: text, closed: z.boolean() }

const Company = z.object({
  name: text,
  SIREN: textOrNull,
  CEO: textOrNull,
  payment,
  address: Address.nullable(),
  ape: z.object({ producerId: textOrNull, code: textOrNull, name: textOrNull }).nullable(),
  vat: z
    .object({
      producerId,
      customerReferenceCode: text,
      rate: z.number().openapi({ description: 'Percentage' }),
    })
    .nullable(),
  IBANs: z.array(text),
  contacts,
  miscellaneous: miscellaneous.nullable(),
})

const Employee = z.object({
  firstName: textOrNull,
  lastName: textOrNull,
  email: textOrNull,
  phoneNumber: textOrNull,
  phoneNumberBis: textOrNull,
  NIR: textOrNull,
  profession: textOrNull,
  payment,
  address: Address.nullable(),
  IBANs: z.array(text),
  contacts,
  miscellaneous: miscellaneous.extend({ doubtfulAccount: accountOrNull }).nullable(),
})

export const Account = z
  .union([
    z
      .object({ ...accountHead, counterpartAccount: accountOrNull, correspondanceAccount: accountOrNull })
      .openapi({ description: 'General' }),
    z
      .object({ ...accountHead, counterpartAccount: accountOrNull, company: Company })
      .openapi({ description: 'Roots 401 and 411' }),
    z.object({ ...accountHead, employee: Employee }).openapi({ description: 'Root 421' }),
  ])
  .openapi('Account')

export const Exercice = z
  .object({
    producerId,
    name: text.openapi({ description: 'N, N-1, N+1…', example: 'N' }),
    period: z.object({
      start: date,
      end: date,
      duration: z.number().int().openapi({ description: 'Months' }),
      closed: z
        .object({
          at: date,
          by: z.object({ producerId: textOrNull, firstName: textOrNull, lastName: textOrNull }),
        })
        .nullable(),
    }),
    state: z.enum(['open', 'closed']),
    additionalProducerProperties: z.object({ lettering: z.enum(['MONO', 'MULTI']) }),
  })
  .openapi('Exercice')

export const AnalyticalAxe = z
  .object({
    producerId,
    code: text,
    name: text,
    sections: z.array(
      z.object({
        producerId,
        code: text,
        name: text,
        account: textOrNull.openapi({ description: 'Roots of account numbers', example: '60;61' }),
        additionalProducerProperties: z.object({ closed: z.boolean() }),
      }),
    ),
    additionalProducerProperties: z.object({ defaultSectionId: textOrNull }),
  })
  .openapi('AnalyticalAxe')

export const Society = z
  .object({ id: text, name: text, reference: textOrNull, SIRET: textOrNull })
  .openapi('Society')

const money = z.number().openapi({ example: 264.44 })

export const AccountBalance = z
  .object({
    account,
    debit: money,
    credit: money,
    balance: money.openapi({ description: 'Debit minus credit' }),
  })
  .openapi('AccountBalance')
