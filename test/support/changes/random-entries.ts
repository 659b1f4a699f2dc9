/** Random entries for a folder of `insertDimensions`, with texts that some format has to escape, cut or replace. */
import fc from 'fast-check'
import type { EntryRow, MovementRow } from '../../../src/formats/items/entry.ts'
import { exercices } from '../ledgers/ledger.ts'

export type RandomEntry = [
  entry: Partial<EntryRow> & { id: string },
  movements: (Partial<MovementRow> & { id: string })[],
]

const controls = Array.from({ length: 31 }, (_, i) => String.fromCharCode(i + 1))
// biome-ignore format: a table
const pieces = [
  ...controls, '"', '""', ',', '","', '\r\n', '"\r\n"', '\\', '\\\\', '\\"', '/', '</script>', '\\N', '\\.', 'NULL', 'null',
  '\\t', '\\x41', '\\101', '\u007f', '\u0080', '\u00a0', '\u2028', '\u2029', '\ufeff', '\ufffd', '\uffff', '\u{10ffff}',
  '😀', '👩‍👩‍👧', '𝒜"', ' ', '  ', '\u3000', '0', '=1+1', '{}', '[]', 'E\u0301', 'É', 'ß', 'İı', '中文', 'العربية', 'हिन्दी', 'œ€', '½', 'Ł',
]

/** No NUL, which PostgreSQL has no place for. */
const text = fc
  .oneof(
    fc.array(fc.oneof(fc.constantFrom(...pieces), fc.constantFrom('a', 'b', 'Facture')), { maxLength: 5 }),
    fc.array(fc.string({ unit: 'grapheme', maxLength: 60 }), { minLength: 1, maxLength: 1 }),
  )
  .map((parts) => parts.join('').replaceAll('\0', ''))

/** Keys of objects that have no number as their name: JavaScript would put these first. */
const key = text.map((name) => `.${name}`)
const addresses = fc.option(fc.dictionary(key, text, { maxKeys: 2, noNullPrototype: true }))
const metadata = fc.option(
  fc.record({
    partnerId: text,
    json: fc.dictionary(key, fc.oneof(text, fc.integer(), fc.constantFrom(true, null), fc.array(text)), {
      maxKeys: 2,
      noNullPrototype: true,
    }),
  }),
)
const amount = fc.oneof(
  fc.constantFrom(0n, 1n, -1n, 10n, 99n, -100n, 101n, 26444n),
  fc.bigInt(-(10n ** 13n), 10n ** 13n),
)
const shares = fc.constantFrom<bigint[] | null>(
  null,
  [71n, 26444n, 1000000n],
  [71n, 1n, 333333n, 72n, 2n, 666667n],
  [73n, -50n, 500000n, 72n, -50n, 500000n, 75n, 100n, 1n],
)
const lettering = fc.constantFrom(
  { letteringState: 'none' as const, letteringCode: null },
  { letteringState: 'partial' as const, letteringCode: 'ab' },
  { letteringState: 'complete' as const, letteringCode: 'LET2024-0001' },
  { letteringState: 'complete' as const, letteringCode: '\\\\N' },
)
const idFrom = (min: number, max: number) => fc.integer({ min, max }).map(String)

const movement = fc
  .record({
    accountId: idFrom(101, 110),
    description: text,
    invoiceNumber: text,
    freeNumber: fc.option(text),
    dueDate: fc.option(fc.constant('2026-02-28')),
    paymentId: fc.option(idFrom(51, 57)),
    side: fc.constantFrom('debit' as const, 'credit' as const),
    amount,
    shares,
    lettering,
    attachments: addresses,
  })
  .map(({ side, amount: money, lettering: state, ...row }) => ({ ...row, ...state, [side]: money }))

const entry = fc
  .record({
    exercice: fc.constantFrom(...exercices),
    day: fc.nat({ max: 364 }),
    journalId: idFrom(31, 45),
    dueDate: fc.option(fc.constant('2025-12-31')),
    isDraft: fc.boolean(),
    // On either side of midnight in Paris.
    time: fc.constantFrom('21:59:59', '22:00:00', '22:59:59', '23:00:00'),
    source: fc.constantFrom('FEC', 'E', 'OD_TVA'),
    currency: fc.constantFrom(
      { currency: 'EUR' },
      { currency: 'CHF' },
      { currency: 'USD', rate: '1.083200' },
      { currency: 'USD', rate: '0.873417' },
    ),
    comment: fc.option(text),
    partnerMetadata: metadata,
    attachments: addresses,
  })
  .map(({ exercice, day, isDraft, time, currency, ...row }) => {
    const date = new Date(Date.parse(exercice.startDate) + day * 86_400_000).toISOString().slice(0, 10)
    return {
      ...row,
      ...currency,
      exerciceId: exercice.id,
      date,
      accountedAt: date,
      createdAt: `${date}T${time}Z`,
      validatedAt: isDraft ? null : date,
    }
  })

export const randomEntries: fc.Arbitrary<RandomEntry[]> = fc
  .array(fc.tuple(entry, fc.array(movement, { maxLength: 4 })), { minLength: 1, maxLength: 5 })
  .map((entries) =>
    entries.map(([row, movements], i) => [
      // A TRA file lists the currencies of all selected entries (docs/spec/tra.md). The oracle reads those of movements, so
      // it does not have that of an entry without any.
      { ...row, id: String(1_000 + 10 * i), ...(movements.length === 0 && { currency: 'EUR', rate: null }) },
      // Ids of movements fall while those of their entries rise.
      movements.map((line, k) => ({ ...line, id: String(50_000 - 100 * i + k) })),
    ]),
  )
