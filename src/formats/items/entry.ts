/**
 * Entries and their movements (docs/spec/resources.md#entry, #movement). mad/entry.ts and mad/movement.ts write them.
 */
import { z } from 'zod'
import * as column from './table.ts'
import {
  anyJson,
  day,
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

/** File addresses, by file name. */
const attachments = column.orNull(column.column<Record<string, string>>('json'))

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
  /** Null if and only if the state is `none`. The `*` that partners see before a partial code is not stored. */
  letteringCode: column.orNull(column.text),
  /**
   * Flat triples: section id, amount in minor units, rate in ten-thousandths of a percent (1000000n is 100 %). Sections
   * of one axis are adjacent. An array is used because shares are written and read only with their movement: a table
   * would be a third stream to merge.
   */
  shares: column.orNull(column.column<bigint[]>('bigints')),
  attachments,
})
export type MovementRow = column.RowOf<typeof movementTable>

const Attachments = z
  .record(
    text,
    named('Attachment', { type: z.literal('URL', 'URL is expected'), value: text }),
    'an object of files is expected',
  )
  .meta({ id: 'Attachments', description: 'File name to address' })

/** A movement inside its entry, in the form of a full export. */
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

/** Source codes of entries (docs/spec/resources.md#source-codes). */
// biome-ignore format: a table
export const sourceCodes = [
  'E', 'M', 'O', 'EXT', 'L', 'IB', 'P', 'AN', 'OD_TVA', 'OD_CALC_IS', 'OD_ECART', 'REM_BQ', 'RB_MANUEL', 'WORKSHEET',
  'QUADRA', 'CEGID', 'ACD', 'FEC', 'EXCEL', 'RB_JDC', 'RB_QT', 'RB_SB', 'RB_FTP', 'RTVR', 'QUICK', 'ABO', 'PRLV_SEPA',
  'VIRT_SEPA', 'API',
] as const

export const entryTable = column.table('entries', {
  id: column.id,
  exerciceId: column.reference,
  journalId: column.reference,
  date: column.plain,
  dueDate: column.orNull(column.plain),
  accountedAt: column.plain,
  createdAt: column.plain,
  /** Null for a draft, which is an entry that awaits validation. */
  validatedAt: column.orNull(column.plain),
  source: column.plain,
  /** The partner that sent the entry, if the source is API. */
  thirdPartyId: column.orNull(column.reference),
  currency: column.text,
  /** Decimal text such as '1.0832'. Set only if the currency is not the folder's. */
  rate: column.orNull(column.plain),
  comment: column.orNull(column.text),
  partnerMetadata: column.orNull(column.column<{ partnerId: string; json: unknown }>('json')),
  attachments,
  /** EcritureNum; null for a draft without a number. A validated entry without one gets a number when it is loaded. */
  number: column.orNull(column.text),
})
export type EntryRow = column.RowOf<typeof entryTable>

const properties = object({
  source: named('EntrySource', {
    name: oneOf(sourceCodes).meta({ type: 'string' }),
    thirdParty: named('SourceThirdParty', { name: text, code: text }).nullable(),
  }),
  partnerMetadata: named('PartnerMetadata', { partnerId: text, json: anyJson }).nullable(),
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

/** An entry in the form of a full export. */
export const MadEntry = object({
  producerId: id,
  attachments: Attachments,
  date: day,
  dueDate: dayOrNull,
  journal: named('NamedJournal', { producerId: id, customerReferenceCode: text, name: text, type: text }),
  currency: named('EntryCurrency', {
    code: z
      .string()
      .regex(/^[A-Z]{3}$/, 'a currency of three capitals is expected')
      .meta({ type: 'string', example: 'EUR' }),
    rate: decimal(6, 'a rate with at most six decimals')
      .refine((rate) => rate < 10n ** 18n && rate > -(10n ** 18n), 'a rate below 10^12 is expected')
      .meta({ description: 'Only if the currency is not that of the folder' })
      .optional(),
  }),
  movements: list(MadMovement),
  additionalProducerProperties: properties,
})
export type FileEntry = z.output<typeof MadEntry>

const { producerId, date, dueDate, currency, journal } = MadEntry.shape
const { attachments: files, account, payment, analytics, lettering, ...beforeEntry } = MadMovement.shape

export const Movement = named('Movement', {
  ...beforeEntry,
  entry: named('MovementEntry', {
    ...{ producerId, date, dueDate, currency, journal },
    additionalProducerProperties: properties
      .omit({ validationDate: true })
      .meta({ id: 'MovementEntryProperties' }),
    attachments: Attachments,
  }),
  ...{ attachments: files, account, payment, analytics, lettering },
})

const Filed = object({
  pieceDate: dayOrNull,
  auxiliaryNumber: textOrNull,
  auxiliaryName: textOrNull,
}).meta({
  id: 'Filed',
  description:
    'Date of the document and third-party account, as a FEC filed them. Only with `columns=extended`, and only if ' +
    'something was filed: otherwise the date is that of the entry, and there is no such account',
})

export const Entry = MadEntry.extend({
  movements: list(MadMovement.extend({ filed: Filed.optional() }).meta({ id: 'EntryMovement' })),
  additionalProducerProperties: properties
    .extend({
      ecritureNum: textOrNull.optional().meta({
        description: 'Number of the entry in its journal. Only with `columns=extended`',
      }),
    })
    .meta({ id: 'EntryProperties' }),
}).meta({ id: 'Entry' })
