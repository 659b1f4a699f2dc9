/**
 * Movements and entries for the OpenAPI document (docs/spec/resources.md#movement, docs/spec/resources.md#entry).
 * formats/mad/movement.ts and entry.ts write the bytes.
 */
import { z } from '@hono/zod-openapi'

const producerId = z.string().openapi({ example: '123456' })
const date = z.iso.date()
const money = z.number().openapi({ example: 264.44 })
const attachments = z
  .record(z.string(), z.object({ type: z.literal('URL'), value: z.string() }))
  .openapi({ description: 'File name to address' })

const currency = z.object({
  code: z.string().openapi({ example: 'EUR' }),
  rate: z.number().optional().openapi({ description: 'Only if the currency is not that of the folder' }),
})
const journal = z.object({
  producerId,
  customerReferenceCode: z.string(),
  name: z.string(),
  type: z.string(),
})
const entryProperties = z.object({
  source: z.object({
    name: z.string(),
    thirdParty: z.object({ name: z.string(), code: z.string() }).nullable(),
  }),
  partnerMetadata: z.object({ partnerId: z.string(), json: z.unknown() }).nullable(),
  comment: z.string().nullable(),
  createdAt: z.number().int().openapi({ description: 'Epoch seconds' }),
  accountedAt: date,
})

const EntryOfMovement = z.object({
  producerId,
  date,
  dueDate: date.nullable(),
  currency,
  journal,
  additionalProducerProperties: entryProperties,
  attachments,
})

const Section = z.object({
  producerId,
  amount: money,
  rate: z.number().openapi({ description: 'Percentage', example: 100 }),
  code: z.string(),
  name: z.string(),
})

const beforeEntry = {
  producerId,
  description: z.string(),
  dueDate: date.nullable(),
  freeNumber: z.string().nullable(),
  invoiceNumber: z.string(),
  value: z.object({
    credit: money,
    debit: money,
    amount: money.openapi({ description: 'Credit minus debit' }),
  }),
}
const afterEntry = {
  attachments,
  account: z.object({ producerId, number: z.string(), name: z.string() }),
  payment: z.object({ producerId, name: z.string(), code: z.string() }).nullable(),
  analytics: z.array(
    z.object({ producerId, code: z.string(), name: z.string(), sections: z.array(Section) }),
  ),
  lettering: z.object({ state: z.enum(['none', 'partial', 'complete']), value: z.string().nullable() }),
}

export const Movement = z
  .object({ ...beforeEntry, entry: EntryOfMovement, ...afterEntry })
  .openapi('Movement')

const Filed = z
  .object({
    pieceDate: date.nullable(),
    auxiliaryNumber: z.string().nullable(),
    auxiliaryName: z.string().nullable(),
  })
  .openapi({
    description:
      'Date of the document and third-party account, as a FEC filed them. Only with `columns=extended`, and only if ' +
      'something was filed: otherwise the date is that of the entry, and there is no such account',
  })

export const Entry = z
  .object({
    producerId,
    attachments,
    date,
    dueDate: date.nullable(),
    journal,
    currency,
    movements: z.array(z.object({ ...beforeEntry, ...afterEntry, filed: Filed.optional() })),
    additionalProducerProperties: entryProperties.extend({
      validationDate: date.nullable().openapi({ description: 'Null: awaiting validation' }),
      ecritureNum: z.string().nullable().optional().openapi({
        description: 'Number of the entry in its journal. Only with `columns=extended`',
      }),
    }),
  })
  .openapi('Entry')
