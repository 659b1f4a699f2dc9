/** The rows of a ledger as lines of COPY (docs/spec/ledgers.md#tables), from one snapshot. */

import { createHash } from 'node:crypto'
import type pg from 'pg'
import {
  type ColumnName,
  ledgerTables,
  type WholeTableName,
} from '../../../packages/contract/src/ledger-tables.ts'
import { AppError } from '../../errors.ts'
import { UnsupportedByFormat } from '../../formats/file-formats.ts'
import { checkCopyRow, copyRowBytesMax } from '../../formats/flat/columns.ts'
import { copied, copy } from '../../formats/flat/dialect.ts'
import { renderFlatDictionary } from '../../formats/flat/dictionary.ts'
import { MovementRows } from '../../formats/flat/movement-rows.ts'
import { accountingFolderItem } from '../../formats/items/accounting-folder.ts'
import { accountItem } from '../../formats/items/accounts/account.ts'
import { partyKind } from '../../formats/items/accounts/parties.ts'
import { monthsOf } from '../../formats/items/exercice.ts'
import { journalTypeLabels } from '../../formats/items/journal.ts'
import { paymentMode, shownPaymentCode } from '../../formats/items/payment.ts'
import { inUnits } from '../../formats/minor-units.ts'
import type { DictionaryRows } from '../../formats/rows.ts'
import { shownDigests, type TableDigests } from '../blocks/kept-blocks.sql.ts'
import type { ChunkBuffer, Chunks } from '../chunks.ts'
import {
  type AccountHead,
  type BookAccount,
  type Books,
  readBookAccounts,
  readBooks,
} from '../read/books.sql.ts'
import { readFiledAccounts } from '../read/fec-file.sql.ts'
import type { FolderOwner } from './collections.ts'
import { packPieces } from './framing.ts'

type Field = string | number | boolean | null
/** A row by the columns of its table. Columns that the row lacks are null. */
type Row<Name extends WholeTableName> = Partial<Record<ColumnName<Name>, Field>>

/**
 * Reads every table but accounts, in one statement.
 * @param client a connection of the snapshot
 * @param owner `timeZone` decides on which day a fiscal year was closed; `withEmployees`: whether accounts have the
 *   personal data of employees
 * @throws {AppError} ERR-FOLDER-NOT-FOUND
 */
export async function readLedgerRows(
  client: pg.ClientBase,
  { timeZone, withEmployees, ...key }: Omit<FolderOwner, 'today'>,
) {
  const read = await readBooks(client, key, timeZone)
  if (!read) throw new AppError('ERR-FOLDER-NOT-FOUND')
  const books = read
  /** The heads of all accounts, once they have been read. */
  let heads: AccountHead[] | undefined
  /**
   * SHA-256 of the accounts' rows for other readers: without the data of employees if this reader gets them, otherwise
   * with them. Set when the table of accounts has been rendered.
   */
  let otherAccounts: string | undefined

  async function* accountLines(): AsyncGenerator<string> {
    const rowOf = accountRows(books)
    const others = createHash('sha256')
    const readHeads: AccountHead[] = []
    for await (const batch of readBookAccounts(client, key)) {
      let other = ''
      for (const account of batch) {
        const row = rowOf(account)
        const opened = lineOf('accounts', row)
        const hidden =
          partyKind(account.number) === 'employee' ? lineOf('accounts', { ...row, details: null }) : opened
        yield withEmployees ? opened : hidden
        other += withEmployees ? hidden : opened
        const { id, number, name, auxiliaryNumber, auxiliaryName } = account
        readHeads.push({ id, number, name, auxiliaryNumber, auxiliaryName })
      }
      others.update(other)
    }
    heads = readHeads
    otherAccounts = others.digest('hex')
  }

  return {
    /**
     * The lines of a table, ascending by its first column, in chunks of whole lines. A chunk is as large as the buffer,
     * or holds one longer line.
     * @throws {UnsupportedByFormat} for a row that is too long for COPY
     */
    table(name: WholeTableName, buffer: ChunkBuffer): Chunks {
      const lines =
        name === 'accounts' ? accountLines() : shownRows[name](books).map((row) => lineOf(name, row as never))
      return packPieces(lines, buffer)
    },

    /**
     * The format of movements, for all entries of the folder including drafts, by entry id. It reads accounts if their
     * table was not rendered. When a line cannot be written, it throws UnsupportedByFormat, which names the entry.
     */
    async movements(): Promise<MovementRows> {
      heads ??= await readFiledAccounts(client, key)
      const auxiliaries = heads.flatMap(({ id, auxiliaryNumber: number, auxiliaryName: name }) =>
        number === null ? [] : [{ id, number, name: name! }],
      )
      const dictionary = renderFlatDictionary({ ...namedIn(books), accounts: heads }, auxiliaries, copy)
      return new MovementRows(dictionary, copy, checkCopyRow)
    },

    /**
     * The digests of the tables, to be kept for readers with and without the data of employees.
     * @param shown the digests of the tables as this reader gets them
     * @param kept digests of the same state, for accounts if these were not rendered
     */
    digests(shown: Readonly<Record<WholeTableName, string>>, kept: TableDigests | undefined): TableDigests {
      const other = otherAccounts ?? shownDigests(kept!, !withEmployees).accounts
      const [accounts, accountsWithoutEmployees] = withEmployees
        ? [shown.accounts, other]
        : [other, shown.accounts]
      return { ...shown, accounts, accountsWithoutEmployees }
    },
  }
}
export type LedgerRows = Awaited<ReturnType<typeof readLedgerRows>>

/** Makes a function that makes the row of an account. */
function accountRows({ payments, vats }: Books): (account: BookAccount) => Row<'accounts'> {
  const paymentsById = new Map(payments.map(({ payment_id: id, code }) => [id, { id: String(id), code }]))
  const vatsById = new Map(
    vats.map(({ vat_id: id, vat_code: code, rate }) => [id, { id: String(id), code, rate }]),
  )
  const paymentOf = (id: number | null) => (id === null ? null : paymentsById.get(id)!)
  const vatOf = (id: number | null) => (id === null ? null : vatsById.get(id)!)
  return (account) => {
    const { company, employee } = account
    const item = accountItem({
      ...account,
      counterpartAccount: null,
      correspondanceAccount: null,
      company: company && { ...company, payment: paymentOf(company.paymentId), vat: vatOf(company.vatId) },
      employee: employee && { ...employee, payment: paymentOf(employee.paymentId) },
    })
    return {
      account_id: account.id,
      counterpart_account_id: 'counterpartAccount' in item ? account.counterpartAccountId : null,
      correspondance_account_id: 'correspondanceAccount' in item ? account.correspondanceAccountId : null,
      account_number: account.number,
      account_name: account.name,
      closed: account.closed,
      details: detailsOf(item),
    }
  }
}

/** The rows of each table, from the books. */
const shownRows: { [Name in Exclude<WholeTableName, 'accounts'>]: (books: Books) => Row<Name>[] } = {
  folders: ({ folders }) =>
    folders.map(({ society_id, view }) => {
      const { address, contact, RCS } = accountingFolderItem(view)
      const { name, reference, siret } = view
      const details = JSON.stringify({ address, contact, RCS })
      return { society_id, name, reference, siret, capital: inUnits(BigInt(view.capital)), details }
    }),
  exercices: ({ exercices }) =>
    exercices.map((exercice) => ({
      ...exercice,
      months: monthsOf(exercice.start_date, exercice.end_date),
      state: exercice.closed_at === null ? 'open' : 'closed',
    })),
  journals: ({ journals }) =>
    journals.map((journal) => ({ ...journal, journal_type_name: journalTypeLabels[journal.journal_type] })),
  payments: ({ payments }) =>
    payments.map(({ payment_id, code }) => {
      const shown = paymentMode(code)
      return {
        payment_id,
        payment_name: shown.name,
        payment_code: shown.code,
        internal_code: shownPaymentCode(code),
      }
    }),
  banks: ({ banks }) => banks,
  axes: ({ axes }) => axes,
  sections: ({ sections }) =>
    sections.map(({ account_roots: roots, ...section }) => ({
      ...section,
      account_roots: roots.length === 0 ? null : roots.join(';'),
    })),
  vats: ({ vats }) => vats.map(({ rate, ...vat }) => ({ ...vat, rate: `${inUnits(BigInt(rate))}0000` })),
}

/** The rows that movements refer to, except accounts. */
function namedIn(books: Books): Omit<DictionaryRows, 'accounts'> {
  return {
    journals: books.journals.map((row) => ({
      id: String(row.journal_id),
      code: row.journal_code,
      name: row.journal_name,
      type: row.journal_type,
    })),
    payments: books.payments.map(({ payment_id: id, code }) => ({ id: String(id), code })),
    axes: books.axes.map((row) => ({ id: String(row.axis_id), code: row.axis_code, name: row.axis_name })),
    sections: books.sections.map((row) => ({
      id: String(row.section_id),
      axisId: String(row.axis_id),
      code: row.section_code,
      name: row.section_name,
    })),
    thirdParties: books.thirdParties.map(({ id, code, name }) => ({ id: String(id), code, name })),
  }
}

/** The company or the employee of an account, as the route of accounts gives it. */
function detailsOf(item: ReturnType<typeof accountItem>): string | null {
  if ('company' in item) return JSON.stringify({ company: item.company })
  return 'employee' in item ? JSON.stringify({ employee: item.employee }) : null
}

function lineOf<Name extends WholeTableName>(name: Name, row: Row<Name>): string {
  const { columns } = ledgerTables[name]
  const fields = columns.map((column) => fieldText(row[column.name as ColumnName<Name>] ?? null))
  const line = `${fields.join('\t')}\n`
  // A character has at most three bytes for each unit of a string.
  if (line.length * 3 <= copyRowBytesMax || Buffer.byteLength(line) <= copyRowBytesMax) return line
  const id = `${columns[0]!.name} ${fields[0]}`
  throw new UnsupportedByFormat(
    `A row holds at most ${copyRowBytesMax} bytes, and that of ${name} with ${id} has more`,
  )
}

function fieldText(field: Field): string {
  if (field === null) return '\\N'
  if (typeof field === 'boolean') return field ? 't' : 'f'
  return typeof field === 'string' ? copied(field) : String(field)
}
