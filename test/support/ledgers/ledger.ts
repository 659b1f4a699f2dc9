/**
 * A small ledger with everything that an export can show, in every combination that matters: three exercices
 * whose entries interleave, drafts first, last and between, ids of one to four digits, movements whose ids
 * fall while those of their entries rise. Deterministic, with the same ids in every folder, so that a query
 * that forgets the folder or tenant shows.
 */

import type pg from 'pg'
import { accountTable } from '../../../src/formats/items/accounts/account.ts'
import { axisTable, sectionTable } from '../../../src/formats/items/axis.ts'
import {
  type EntryRow,
  entryTable,
  type MovementRow,
  movementTable,
} from '../../../src/formats/items/entry.ts'
import { exerciceTable } from '../../../src/formats/items/exercice.ts'
import { type JournalType, journalTable } from '../../../src/formats/items/journal.ts'
import { paymentTable } from '../../../src/formats/items/payment.ts'
import { blank, type TableOf } from '../../../src/formats/items/table.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import * as load from '../../../src/ledger/load.ts'
import type { Staff } from './tenants.ts'

/** Each is a year that starts on July 1. */
export const exercices = [
  { id: '11', startDate: '2023-07-01', endDate: '2024-06-30' },
  { id: '12', startDate: '2024-07-01', endDate: '2025-06-30' },
  { id: '13', startDate: '2025-07-01', endDate: '2026-06-30' },
] as const

const accountNumbers = [
  '706000',
  '401ALPHA',
  '6',
  '411DUPONT',
  '60',
  '512',
  '4111',
  '601000',
  '401BETA',
  '607',
]
const firstAccount = 101

// biome-ignore format: a table
const journalTypes: JournalType[] = ['ACH', 'VTE', 'BQ', 'CAISSE', 'A_EXT', 'EXT', 'AN', 'NFD', 'RBAL', 'OD', 'OD_AUDIT',
  'OD_PAIE', 'OD_LET', 'OD_DECL_FISCALE', 'OD_EXC']
const firstJournal = 31

/** The last is not a code of the specification. */
const paymentCodes = ['CB', 'VIRT', 'ESP', 'CHQ', 'PRLV', 'LCR', 'TRAITE']
const firstPayment = 51

/** Two axes, 61 and 62. Sections 71 to 73 belong to the first, 74 and 75 to the second. */
const sectionAxes = ['61', '61', '61', '62', '62']
const firstSection = 71

const sources = ['FEC', 'API', 'E', 'OD_TVA']
const amounts = [26444n, 10n, 10000n, 1n, 100n, 123456789n, 5n, 0n, -1999n, 99999n]
const shareSets: (bigint[] | null)[] = [
  null,
  [71n, 26444n, 1000000n],
  [71n, 1n, 333333n, 72n, 2n, 666667n],
  [73n, -50n, 500000n, 72n, -50n, 500000n, 75n, 100n, 1n],
  [74n, 10n, 123400n, 71n, 5n, 1000000n],
]

const entryCount = 140

export interface LedgerOptions extends FolderKey {
  /** A part of every text, so that no two folders have the same text. */
  label: string
  /** A registered partner, the sender of the entries of source API. */
  thirdPartyId: string
}

/** Fills an empty folder, as the owner. */
export async function fillLedger(client: pg.ClientBase, options: LedgerOptions): Promise<void> {
  const { label, thirdPartyId, ...folder } = options
  await insertDimensions(client, folder, label)
  const entries = new load.TableWriter(client, entryTable)
  const movements = new load.TableWriter(client, movementTable)
  let count = 0
  // Rows are written backwards, so that no export has their order.
  for (let i = entryCount - 1; i >= 0; i--) {
    const entry = entryOf(i, label, thirdPartyId)
    entries.add({ ...blankEntry, ...folder, ...entry })
    for (let k = i % 4; k >= 0; k--) {
      const row = movementOf(count++, label)
      // The ids of each entry's movements are below those of the entry before, and not in order within the
      // entry.
      const id = String(9000 - 10 * i + ((k * 3) % 4))
      movements.add({
        ...blankMovement,
        ...folder,
        exerciceId: entry.exerciceId!,
        entryId: entry.id!,
        id,
        ...row,
      })
    }
  }
  await entries.flush()
  await movements.flush()
  await client.query('analyze grandlivre.entries, grandlivre.movements')
}

/**
 * Fills these empty folders; their names are the labels.
 * @returns the id and the secret of the third party PARTNER, the sender of their entries of source API
 */
export async function fillFolders(staff: Staff, filled: Record<string, FolderKey>) {
  const secret = await staff.thirdParty('PARTNER')
  const thirdPartyId = await staff.thirdPartyId('PARTNER')
  for (const [label, { schemaId, folderId }] of Object.entries(filled))
    await fillLedger(staff.client, { schemaId, folderId, label, thirdPartyId })
  return { secret, thirdPartyId }
}

function entryOf(
  i: number,
  label: string,
  thirdPartyId: string,
): Partial<EntryRow> & { id: string; exerciceId: string } {
  const exercice = exercices[i % 3]!
  const date = addDays(exercice.startDate, (i * 37) % 365)
  const source = sources[i % 4]!
  const isDraft = i === 0 || i === entryCount - 1 || i % 7 === 3
  // Either side of midnight in Paris, in winter (+1) and in summer (+2).
  const time = ['21:59:59', '22:00:00', '22:59:59', '23:00:00', '12:34:56'][i % 5]!
  return {
    id: String(3 + 9 * i),
    exerciceId: exercice.id,
    journalId: String(firstJournal + (i % journalTypes.length)),
    date,
    dueDate: i % 2 === 0 ? null : addDays(date, 30),
    accountedAt: addDays(date, i % 4 === 1 ? 45 : 0),
    createdAt: `${addDays(date, (i * 5) % 61)}T${time}Z`,
    validatedAt: isDraft ? null : addDays(date, 3),
    source,
    thirdPartyId: source === 'API' ? thirdPartyId : null,
    ...(i % 11 === 0 ? { currency: 'USD', rate: i % 2 === 0 ? '1.083200' : '0.000001' } : {}),
    comment: i % 6 === 0 ? `Commentaire "${label}" \\ ${i}\n` : null,
    partnerMetadata:
      i % 8 === 1 ? { partnerId: `p-${i}`, json: { b: [1, 2.5, null], a: `é"\\${label}`, '2': true } } : null,
    attachments:
      i % 17 === 0
        ? { [`pièce "${i}".pdf`]: `https://files.example/${label}/${i}?a=1&b=2`, b: 'https://b' }
        : null,
  }
}

function movementOf(n: number, label: string): Partial<MovementRow> {
  const money = amounts[n % amounts.length]!
  const letteringState = (['none', 'partial', 'complete'] as const)[n % 3]!
  const payment = Math.floor(n / 3) % (paymentCodes.length + 1)
  return {
    accountId: String(firstAccount + ((n * 7) % accountNumbers.length)),
    description: `Écriture ${n} ${label}`,
    dueDate: n % 2 === 0 ? null : '2026-02-28',
    freeNumber: Math.floor(n / 2) % 2 === 0 ? null : `libre ${n}`,
    invoiceNumber: n % 9 === 0 ? '' : `F-${n}`,
    debit: Math.floor(n / 5) % 2 === 0 ? money : 0n,
    credit: Math.floor(n / 5) % 2 === 0 ? 0n : money,
    paymentId: payment === 0 ? null : String(firstPayment + payment - 1),
    letteringState,
    letteringCode: letteringState === 'none' ? null : `L${n % 26}`,
    shares: shareSets[n % shareSets.length]!,
    attachments: n % 13 === 0 ? { [`facture-${n}.pdf`]: `https://files.example/m/${n}` } : null,
  }
}

/** Adds an entry with movements to a filled folder; fields not given get plain values. */
export async function addEntry(
  client: pg.ClientBase,
  folder: FolderKey,
  entry: Partial<EntryRow> & { id: string },
  rows: (Partial<MovementRow> & { id: string })[],
): Promise<void> {
  const { exerciceId } = { ...blankEntry, ...entry }
  const entries = new load.TableWriter(client, entryTable)
  const movements = new load.TableWriter(client, movementTable)
  entries.add({ ...blankEntry, ...folder, ...entry })
  for (const row of rows)
    movements.add({ ...blankMovement, ...folder, exerciceId, entryId: entry.id, ...row })
  await entries.flush()
  await movements.flush()
}

const blankEntry = {
  ...blank(entryTable),
  exerciceId: '12',
  journalId: '31',
  date: '2024-09-01',
  accountedAt: '2024-09-01',
  createdAt: '2024-09-01T10:00:00Z',
  validatedAt: '2024-09-02',
  source: 'E',
  currency: 'EUR',
}

const blankMovement = {
  ...blank(movementTable),
  letteringState: 'none' as const,
  accountId: '101',
  description: '',
  invoiceNumber: '',
  debit: 0n,
  credit: 0n,
}

/** Inserts all rows except entries and movements. */
export async function insertDimensions(
  client: pg.ClientBase,
  folder: FolderKey,
  label: string,
): Promise<void> {
  const write = async <Row>(table: TableOf<Row>, rows: Omit<Row, keyof FolderKey>[]) => {
    const writer = new load.TableWriter<Row>(client, table)
    for (const row of rows) writer.add({ ...folder, ...row } as Row)
    await writer.flush()
  }
  const numbered = <Item, Row>(first: number, items: readonly Item[], row: (item: Item, id: string) => Row) =>
    items.map((item, i) => row(item, String(first + i)))
  const noCounterpart = { counterpartAccountId: null, correspondanceAccountId: null }
  await write(
    accountTable,
    numbered(firstAccount, accountNumbers, (number, id) => {
      return { id, number, name: `Compte "${number}" \\ ${label} 😀`, closed: false, ...noCounterpart }
    }),
  )
  await write(
    journalTable,
    numbered(firstJournal, journalTypes, (type, id) => {
      return {
        id,
        code: `J${id}`,
        name: `Journal ${type} ${label}`,
        type,
        counterpartAccountId: null,
        locked: false,
      }
    }),
  )
  await write(
    paymentTable,
    numbered(firstPayment, paymentCodes, (code, id) => ({ id, code })),
  )
  await client.query('begin')
  await write(
    axisTable,
    ['61', '62'].map((id) => ({
      id,
      code: `AXE${id}`,
      name: `Axe ${id} "${label}"`,
      defaultSectionId: null,
    })),
  )
  await write(
    sectionTable,
    numbered(firstSection, sectionAxes, (axisId, id) => {
      return { id, axisId, code: `S${id}`, name: `Section ${id} é ${label}`, accountRoots: [], closed: false }
    }),
  )
  await client.query('commit')
  const open = { closedAt: null, closedById: null, closedByFirstName: null, closedByLastName: null }
  await write(
    exerciceTable,
    exercices.map((exercice) => ({ ...exercice, lettering: 'MONO' as const, ...open })),
  )
}

function addDays(date: string, days: number): string {
  const moved = new Date(`${date}T00:00:00Z`)
  moved.setUTCDate(moved.getUTCDate() + days)
  return moved.toISOString().slice(0, 10)
}
