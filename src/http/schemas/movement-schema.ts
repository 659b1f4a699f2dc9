/**
 * Movements and entries for the OpenAPI document (docs/spec/resources.md#movement, docs/spec/resources.md#entry), made
 * of those that a MAD file has. formats/mad/movement.ts and entry.ts write the bytes.
 */
import { z } from '@hono/zod-openapi'
import { entry, entryProperties, movement } from '../../formats/mad/read/item-schemas.ts'

const { producerId, date, dueDate, currency, journal, attachments } = entry.shape

const EntryOfMovement = z.object({
  producerId,
  date,
  dueDate,
  currency,
  journal,
  additionalProducerProperties: entryProperties.omit({ validationDate: true }),
  attachments,
})

const { attachments: files, account, payment, analytics, lettering, ...beforeEntry } = movement.shape

export const Movement = z
  .object({
    ...beforeEntry,
    entry: EntryOfMovement,
    attachments: files,
    account,
    payment,
    analytics,
    lettering,
  })
  .openapi('Movement')

const Filed = z
  .object({
    pieceDate: z.iso.date().nullable(),
    auxiliaryNumber: z.string().nullable(),
    auxiliaryName: z.string().nullable(),
  })
  .openapi({
    description:
      'Date of the document and third-party account, as a FEC filed them. Only with `columns=extended`, and only if ' +
      'something was filed: otherwise the date is that of the entry, and there is no such account',
  })

export const Entry = entry
  .extend({
    movements: z.array(movement.extend({ filed: Filed.optional() })),
    additionalProducerProperties: entryProperties.extend({
      ecritureNum: z.string().nullable().optional().openapi({
        description: 'Number of the entry in its journal. Only with `columns=extended`',
      }),
    }),
  })
  .openapi('Entry')
