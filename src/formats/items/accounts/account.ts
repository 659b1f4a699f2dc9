/**
 * Accounts (docs/spec/resources.md#account). The root of the number decides which of three shapes an account has;
 * partners branch on it. If the company of a 401 or 411 account is unknown (a collective account, or a file that names
 * no company), the company gets the name of the account, as in auxiliary accounts.
 */
import type { z } from 'zod'
import { decimal } from '../../minor-units.ts'
import * as column from '../table.ts'
import { boolean, id, money, NamedAccount, named, object, type SimplifiedAccount, text } from '../values.ts'
import {
  Company,
  type CompanyView,
  companyItem,
  companyNamed,
  Employee,
  type EmployeeView,
  employeeItem,
  partyKind,
  unknownEmployee,
} from './parties.ts'

/** The foreign key on counterparts is checked at the end of a flush, so counterparts may be in any order within it. */
export const accountTable = column.table('accounts', {
  id: column.id,
  /** 1 to 40 digits and capital letters. */
  number: column.text,
  name: column.text,
  closed: column.boolean,
  counterpartAccountId: column.orNull(column.referenceTo('accounts')),
  correspondanceAccountId: column.orNull(column.referenceTo('accounts')),
})
export type AccountRow = column.RowOf<typeof accountTable>
export interface AccountView extends column.ShownRow<typeof accountTable> {
  counterpartAccount: SimplifiedAccount | null
  correspondanceAccount: SimplifiedAccount | null
  company: CompanyView | null
  /** Null if the employee is unknown. Undefined if the reader may not see employees. */
  employee: EmployeeView | null | undefined
}

const number = text.regex(/^[0-9A-Z]{1,40}$/, 'an account number is expected: 1 to 40 digits and capitals')
const head = { producerId: id, number: number.meta({ type: 'string' }), name: text, closed: boolean }
const counterpartAccount = NamedAccount.nullable()
const correspondanceAccount = NamedAccount.nullable()
const employee = Employee.nullable()

/** The three shapes of an account, by the kind of party that the root of its number stands for. */
const accountShapes = {
  general: object({ ...head, counterpartAccount, correspondanceAccount }),
  company: object({ ...head, counterpartAccount, company: Company }),
  employee: object({ ...head, employee }),
}
export type FileAccount = z.output<(typeof accountShapes)[keyof typeof accountShapes]>

/**
 * One shape with the members of all three. If it were a choice of shapes, generated clients would take the first that
 * fits, and lose the members of the others.
 */
export const Account = object({
  ...head,
  counterpartAccount: counterpartAccount.optional(),
  correspondanceAccount: correspondanceAccount.optional(),
  company: Company.optional(),
  employee: employee.optional(),
}).meta({
  id: 'Account',
  description:
    'The first digits of `number` decide what it has: 401 and 411 `company` and `counterpartAccount`; 421 `employee`, which ' +
    'is null for a token without the group `employees`; every other `counterpartAccount` and `correspondanceAccount`',
})

export function accountShape(number: string): (typeof accountShapes)[keyof typeof accountShapes] {
  const party = partyKind(number)
  if (party === undefined) return accountShapes.general
  return party === 'employee' ? accountShapes.employee : accountShapes.company
}

export function accountItem(account: AccountView): z.input<typeof Account> {
  const { id, number, name, closed, counterpartAccount, correspondanceAccount, company, employee } = account
  const head = { producerId: id, number, name, closed }
  const party = partyKind(number)
  if (party === undefined) return { ...head, counterpartAccount, correspondanceAccount }
  if (party === 'employee')
    return { ...head, employee: employee === undefined ? null : employeeItem(employee ?? unknownEmployee) }
  return { ...head, counterpartAccount, company: companyItem(company ?? companyNamed(name)) }
}

export function accountRow(account: FileAccount): column.FileRow<typeof accountTable> {
  const { producerId, number, name, closed } = account
  const idOf = (named: SimplifiedAccount | null) => named?.producerId
  return {
    ...{ id: producerId, number, name, closed },
    counterpartAccountId: 'counterpartAccount' in account ? idOf(account.counterpartAccount) : null,
    correspondanceAccountId: 'correspondanceAccount' in account ? idOf(account.correspondanceAccount) : null,
  }
}

/**
 * The sums of an account, as digits of minor units (docs/spec/resources.md#accountbalance). A full export does not
 * contain them.
 */
export interface BalanceView extends Pick<AccountRow, 'id' | 'number' | 'name'> {
  debit: string
  credit: string
  /** Debit minus credit. */
  balance: string
}

export const AccountBalance = named('AccountBalance', {
  account: NamedAccount,
  debit: money,
  credit: money,
  balance: money.meta({ description: 'Debit minus credit' }),
})

export function balanceItem(row: BalanceView): z.input<typeof AccountBalance> {
  const { id, number, name, debit, credit, balance } = row
  return {
    account: { producerId: id, number, name },
    debit: decimal(debit, 2),
    credit: decimal(credit, 2),
    balance: decimal(balance, 2),
  }
}
