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
    object({ type: z.literal('URL', 'URL is expected'), value: text }).meta({ id: 'Attachment' }),
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
  value: object({
    credit: money,
    debit: money,
    amount: money.meta({ description: 'Credit minus debit' }),
  }).meta({ id: 'MovementValue' }),
  attachments: Attachments,
  account: NamedAccount,
  payment: object({ producerId: id, name: text, code: text }).meta({ id: 'MovementPayment' }).nullable(),
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
        }).meta({ id: 'MovementSection' }),
      ),
    }).meta({ id: 'MovementAxis' }),
  ),
  lettering: object({ state: oneOf(letteringStates).meta({ id: 'LetteringState' }), value: textOrNull }).meta(
    { id: 'Lettering' },
  ),
})
export type FileMovement = z.output<typeof MadMovement>
