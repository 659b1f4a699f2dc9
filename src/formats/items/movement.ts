/** Movements, the lines of entries (docs/spec/resources.md#movement). mad/movement.ts writes them. */
import { z } from 'zod'
import * as column from './table.ts'
import {
  dayOrNull,
  decimal,
  filledList,
  id,
  list,
  money,
  NamedAccount,
  named,
  object,
  oneOf,
  text,
  textOrNull,
} from './values.ts'

const letteringStates = ['none', 'partial', 'complete'] as const
export type LetteringState = (typeof letteringStates)[number]

/** Addresses by the names of files. */
export const attachments = column.orNull(column.column<Record<string, string>>('json'))

export const movementTable = column.table('movements', {
  exerciceId: column.reference,
  entryId: column.reference,
  id: column.id,
  accountId: column.reference,
  description: column.text,
  dueDate: column.orNull(column.plain),
  freeNumber: column.orNull(column.text),
  invoiceNumber: column.text,
  debit: column.column<bigint>('plain'),
  credit: column.column<bigint>('plain'),
  paymentId: column.orNull(column.reference),
  letteringState: column.column<LetteringState>('plain'),
  /** Null exactly when the state is none; without the `*` that partners see before a partial code. */
  letteringCode: column.orNull(column.text),
  /**
   * Flat triples: section id, amount in minor units, rate in ten-thousandths of a percent (1000000n is 100 %). Sections
   * of one axis are adjacent. Shares are written and read only with their movement, hence an array: a table would be a
   * third stream to merge.
   */
  shares: column.orNull(column.column<bigint[]>('bigints')),
  attachments,
})
export type MovementRow = column.RowOf<typeof movementTable>

export const Attachments = z
  .record(
    text,
    named('Attachment', { type: z.literal('URL', 'URL is expected'), value: text }),
    'an object of files is expected',
  )
  .meta({ id: 'Attachments', description: 'File name to address' })

/** Inside its entry, as a full export has it. */
export const MadMovement = object({
  producerId: id,
  description: text,
  dueDate: dayOrNull,
  freeNumber: textOrNull,
  invoiceNumber: text,
  value: named('MovementValue', {
    credit: money,
    debit: money,
    amount: money.meta({ description: 'Credit minus debit' }),
  }),
  attachments: Attachments,
  account: NamedAccount,
  payment: named('MovementPayment', { producerId: id, name: text, code: text }).nullable(),
  analytics: list(
    named('MovementAxis', {
      producerId: id,
      code: text,
      name: text,
      sections: filledList(
        named('MovementSection', {
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
  lettering: object({ state: oneOf(letteringStates).meta({ id: 'LetteringState' }), value: textOrNull }).meta(
    { id: 'Lettering' },
  ),
})
export type FileMovement = z.output<typeof MadMovement>
