/** The employee of an account with root 421 (docs/spec/resources.md#account). */
import type { z } from 'zod'
import type { FolderKey } from '../../rows.ts'
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
  accountId: column.reference,
  firstName: column.orNull(column.text),
  lastName: column.orNull(column.text),
  email: column.orNull(column.text),
  phoneNumber: column.orNull(column.text),
  phoneNumberBis: column.orNull(column.text),
  nir: column.orNull(column.text),
  profession: column.orNull(column.text),
  ...partyColumns,
  doubtfulAccountId: column.orNull(column.reference),
})
export type EmployeeRow = column.RowOf<typeof employeeTable>
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
type FileEmployee = z.output<typeof Employee>

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
  key: FolderKey,
  { producerId, employee }: { producerId: string; employee: FileEmployee },
  idOf: column.IdOf,
): EmployeeRow {
  const accountId = idOf('accounts', producerId)
  const { firstName, lastName, email, phoneNumber, phoneNumberBis, NIR, profession } = employee
  const { doubtfulAccount = null, ...miscellaneous } = employee.miscellaneous ?? {}
  return {
    ...{ ...key, accountId, firstName, lastName, email, phoneNumber, phoneNumberBis, nir: NIR, profession },
    ...partyRow(employee, idOf),
    miscellaneous: employee.miscellaneous && (miscellaneous as Miscellaneous),
    doubtfulAccountId: doubtfulAccount && idOf('accounts', doubtfulAccount.producerId),
  }
}

/** One of which the label of its account alone is known: it becomes the last name, as nothing marks the first name. */
export const namedEmployee = (key: FolderKey, accountId: string, name: string): EmployeeRow => ({
  ...key,
  accountId,
  ...unknown,
  lastName: name,
})

const unknown = { ...column.blank(employeeTable), ibans: [], contacts: [] }

export const unknownEmployee: EmployeeView = { ...unknown, payment: null, doubtfulAccount: null }
