/**
 * A consistent folder with everything that is hard for a TRA file: names that do not fit, six axes, entries
 * of two years that interleave, foreign currencies, drafts, letterings that are too long. Entries balance and
 * shares add up.
 */
import type pg from 'pg'
import type { EntryRow, MovementRow } from '../../../src/formats/items/entry.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import { addToFolder } from './full-ledger.ts'
import { addEntry, insertDimensions } from './ledger.ts'

export const hostileNames = [
  'É'.repeat(200),
  'tab\tline\r\nbreak',
  'bell\u0007 delete\u007f next\u0085 line\u2028separator',
  '😀 emoji 👩‍👩‍👧',
  'Кириллица и ещё',
  'e\u0301 a\u0300 combining, o\u0308\u0323 two at once',
  `${'x'.repeat(34)}e\u0301 at the edge`,
  'œuvre « € » – — ’ “” …',
  'Łódź, İstanbul, ﬁn, ①, Ｗｉｄｅ, 株式会社',
  'back\\slash \\N \\t',
]

/** Accounts 101 to 110 and 201 to 208; see ledger.ts and full-ledger.ts. */
export const account = {
  sales: '101',
  supplier: '102',
  customer: '104',
  bank: '106',
  purchases: '110',
  staff: '201',
}
const journal = { purchases: '31', sales: '32', bank: '33', cash: '34', opening: '37', other: '40' }

type Line = Partial<MovementRow>
type Booked = [entry: Partial<EntryRow>, ...lines: Line[]]

export async function fillHostileLedger(client: pg.ClientBase, folder: FolderKey): Promise<void> {
  await insertDimensions(client, folder, 'hostile')
  await addToFolder(client, folder)
  const key = [folder.schemaId, folder.folderId]
  for (const [i, name] of hostileNames.entries()) {
    await client.query(
      'update grandlivre.accounts set name = $3 where schema_id = $1 and folder_id = $2 and id = $4',
      [...key, name, 101 + i],
    )
    await client.query(
      'update grandlivre.journals set name = $3 where schema_id = $1 and folder_id = $2 and id = $4',
      [...key, name, 31 + i],
    )
  }
  await client.query(`update grandlivre.journals set code = 'AC0' || id - 30
    where schema_id = ${key[0]} and folder_id = ${key[1]} and id in (31, 32)`)
  await client.query(`update grandlivre.accounts set correspondance_account_id = 105
    where schema_id = ${key[0]} and folder_id = ${key[1]} and id = 110`)
  for (const id of [64, 65, 66]) {
    await client.query(`insert into grandlivre.axes (schema_id, folder_id, id, code, name)
      values (${key}, ${id}, 'AXIS${id}', 'Axe ${id}')`)
    await client.query(`insert into grandlivre.sections (schema_id, folder_id, id, axis_id, code, name)
      values (${key}, ${id + 20}, ${id}, 'A section code far too long for its field ${id}', 'Section ${id}')`)
  }
  for (const [i, [entry, ...lines]] of entries.entries()) {
    const id = String(5000 + 10 * i)
    const rows = lines.map((line, k) => ({ ...line, id: String(60_000 - 100 * i + k) }))
    await addEntry(client, folder, { ...entry, id }, rows)
  }
}

/** Shares of the given amount on each of the six axes, in two parts on the second. */
const shares = (amount: bigint): bigint[] => {
  const third = amount / 3n
  return [
    [72n, amount, 1_000_000n],
    [74n, third, 333_333n],
    [75n, amount - third, 666_667n],
    [84n, amount, 1_000_000n],
    [85n, amount, 1_000_000n],
    [86n, amount, 1_000_000n],
  ].flat()
}

const invoice = (journalId: string, amount: bigint, party: string, other: string, texts: Line): Line[] => {
  const vat = amount / 6n
  const isSale = journalId === journal.sales
  const on = (accountId: string, value: bigint, isDebit: boolean, more: Line = {}): Line => ({
    ...texts,
    accountId,
    ...(isDebit ? { debit: value } : { credit: value }),
    ...more,
  })
  return [
    on(other, amount - vat, !isSale, { shares: shares(amount - vat) }),
    on('105', vat, !isSale),
    on(party, amount, isSale, { letteringState: 'complete', letteringCode: 'LET2024-0001', paymentId: '52' }),
  ]
}

const last = { exerciceId: '13', date: '2025-09-01', accountedAt: '2025-09-01' }
const first = { exerciceId: '11', date: '2023-09-01', accountedAt: '2023-09-01' }
const dollars = { currency: 'USD', rate: '0.873417' }

const entries: Booked[] = [
  [
    { ...first, journalId: journal.opening },
    { accountId: account.bank, debit: 5n },
    { accountId: '105', credit: 5n },
  ],
  [{ journalId: journal.opening }, { accountId: account.bank, debit: 5n }, { accountId: '105', credit: 5n }],
  ...hostileNames.map((text, i): Booked => {
    const texts = {
      description: text,
      invoiceNumber: text,
      freeNumber: text,
      dueDate: i % 2 ? '2024-11-30' : null,
    }
    const isSale = i % 3 === 0
    return [
      {
        ...(i % 2 ? last : {}),
        ...(i % 4 === 1 ? { validatedAt: null } : {}),
        ...(i % 5 === 2 ? { dueDate: '2025-12-31' } : {}),
        journalId: isSale ? journal.sales : journal.purchases,
        ...(i % 3 === 1 ? dollars : {}),
      },
      ...(isSale
        ? invoice(journal.sales, 12_345n * 10n ** BigInt(i), account.customer, account.sales, texts)
        : invoice(journal.purchases, 777_777n + BigInt(i), account.supplier, account.purchases, texts)),
    ]
  }),
  // Credit notes, by the side of the third party's line and by a negative amount.
  [
    { journalId: journal.purchases },
    { accountId: '110', credit: 9n },
    { accountId: account.supplier, debit: 9n },
  ],
  [
    { journalId: journal.sales },
    { accountId: '101', debit: 9n },
    { accountId: account.customer, credit: 9n },
  ],
  [
    { journalId: journal.purchases },
    { accountId: '110', debit: -9n },
    { accountId: account.supplier, credit: -9n },
  ],
  // Payments: to a supplier, from a customer, both, neither.
  [
    { journalId: journal.bank },
    { accountId: account.bank, credit: 7n, paymentId: '51' },
    { accountId: account.supplier, debit: 7n, letteringState: 'partial', letteringCode: 'LET2024-0002' },
  ],
  [
    { journalId: journal.cash, createdAt: '2024-06-30T22:30:00Z' },
    { accountId: account.customer, credit: 7n, letteringState: 'partial', letteringCode: 'ab' },
    { accountId: account.bank, debit: 7n, letteringState: 'complete', letteringCode: 'AB' },
  ],
  [
    { journalId: journal.bank },
    { accountId: account.customer, credit: 7n, letteringState: 'complete', letteringCode: 'AB' },
    { accountId: account.supplier, debit: 7n },
  ],
  [{ journalId: journal.bank }, { accountId: account.bank, debit: 0n }, { accountId: '105', credit: 0n }],
  // A currency without a rate, the largest amounts that can be stored, an employee.
  [
    { journalId: journal.other, currency: 'CHF' },
    { accountId: '105', debit: 9_223_372_036_854_775_807n },
    { accountId: account.staff, credit: 9_223_372_036_854_775_807n },
  ],
  [
    { journalId: journal.other },
    { accountId: '110', debit: -123_456_789_012_345_678n, shares: shares(-123_456_789_012_345_678n) },
    { accountId: account.staff, credit: -123_456_789_012_345_678n },
  ],
  // A lettering that COPY escapes to a longer text, on an account without any other.
  [
    { journalId: journal.other },
    { accountId: account.staff, debit: 3n, letteringState: 'complete', letteringCode: '\\\\\\\\' },
    { accountId: '105', credit: 3n },
  ],
  // In dollars: three lines, none of them a round number, and shares.
  [
    { ...dollars, journalId: journal.other },
    { accountId: '110', debit: 10_001n, shares: shares(10_001n) },
    { accountId: '105', debit: 2_003n },
    { accountId: account.staff, credit: 12_004n },
  ],
]
