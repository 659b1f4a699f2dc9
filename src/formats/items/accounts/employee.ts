/** The employee of an account with root 421 (docs/spec/resources.md#account). */
import type { z } from 'zod'
import * as column from '../table.ts'
import { NamedAccount, named, type SimplifiedAccount, textOrNull } from '../values.ts'
import {
  Miscellaneous,
  miscellaneousItem,
  type PartyView,
  partyColumns,
  partyItem,
  partyMembers,
  partyRow,
} from './party.ts'

export const employeeTable = column.table('employees', {
  accountId: column.referenceTo('accounts'),
  firstName: column.orNull(column.text),
  lastName: column.orNull(column.text),
  email: column.orNull(column.text),
  phoneNumber: column.orNull(column.text),
  phoneNumberBis: column.orNull(column.text),
  nir: column.orNull(column.text),
  profession: column.orNull(column.text),
  ...partyColumns,
  doubtfulAccountId: column.orNull(column.referenceTo('accounts')),
})
export type EmployeeView = PartyView &
  Omit<column.ShownRow<typeof employeeTable>, keyof PartyView> & { doubtfulAccount: SimplifiedAccount | null }

export const Employee = named('Employee', {
  firstName: textOrNull,
  lastName: textOrNull,
  email: textOrNull,
  phoneNumber: textOrNull,
  phoneNumberBis: textOrNull,
  NIR: textOrNull,
  profession: textOrNull,
  ...partyMembers,
  miscellaneous: named('EmployeeMiscellaneous', {
    ...Miscellaneous.shape,
    doubtfulAccount: NamedAccount.nullable(),
  }).nullable(),
})

export function employeeItem(employee: EmployeeView): z.input<typeof Employee> {
  const { firstName, lastName, email, phoneNumber, phoneNumberBis, nir, profession } = employee
  const { miscellaneous, doubtfulAccount } = employee
  return {
    ...{ firstName, lastName, email, phoneNumber, phoneNumberBis, NIR: nir, profession },
    ...partyItem(employee),
    // The doubtful account is stored separately, and appears even if nothing else is known.
    miscellaneous:
      miscellaneous || doubtfulAccount
        ? { ...miscellaneousItem(miscellaneous ?? {}), doubtfulAccount }
        : null,
  }
}

export function employeeRow(
  accountId: string,
  employee: z.output<typeof Employee>,
): column.FileRow<typeof employeeTable> {
  const { firstName, lastName, email, phoneNumber, phoneNumberBis, NIR, profession } = employee
  const { doubtfulAccount = null, ...miscellaneous } = employee.miscellaneous ?? {}
  return {
    ...{ accountId, firstName, lastName, email, phoneNumber, phoneNumberBis, nir: NIR, profession },
    ...partyRow(employee),
    miscellaneous: employee.miscellaneous && (miscellaneous as Miscellaneous),
    doubtfulAccountId: doubtfulAccount?.producerId,
  }
}

const unknown = { ...column.blank(employeeTable), ibans: [], contacts: [] }

export const unknownEmployee: EmployeeView = { ...unknown, payment: null, doubtfulAccount: null }
