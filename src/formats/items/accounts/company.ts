/** The company of an account with root 401 or 411 (docs/spec/resources.md#account). */
import type { z } from 'zod'
import * as column from '../table.ts'
import { named, siren, text, textOrNull } from '../values.ts'
import {
  Miscellaneous,
  miscellaneousItem,
  type PartyView,
  partyColumns,
  partyItem,
  partyMembers,
  partyRow,
} from './party.ts'
import { NamedVat, namedVat, type VatCodeView } from './vat.ts'

export const companyTable = column.table('companies', {
  accountId: column.referenceTo('accounts'),
  name: column.text,
  siren: column.orNull(column.text),
  ceo: column.orNull(column.text),
  vatId: column.orNull(column.referenceTo('vat_codes')),
  apeProducerId: column.orNull(column.text),
  apeCode: column.orNull(column.text),
  apeName: column.orNull(column.text),
  ...partyColumns,
})
export type CompanyRow = column.RowOf<typeof companyTable>
export type CompanyView = PartyView &
  Omit<column.ShownRow<typeof companyTable>, keyof PartyView> & { vat: VatCodeView | null }

const Activity = named('Activity', { producerId: textOrNull, code: textOrNull, name: textOrNull })

const { payment, address, ...furtherMembers } = partyMembers
export const Company = named('Company', {
  name: text,
  SIREN: siren,
  CEO: textOrNull,
  payment,
  address,
  ape: Activity.nullable(),
  vat: NamedVat.nullable(),
  ...furtherMembers,
  miscellaneous: Miscellaneous.nullable(),
})

export function companyItem(company: CompanyView): z.input<typeof Company> {
  const { name, siren, ceo, apeProducerId, apeCode, apeName, vat, miscellaneous } = company
  const { payment, address, ...further } = partyItem(company)
  const ape = { producerId: apeProducerId, code: apeCode, name: apeName }
  return {
    name,
    SIREN: siren,
    CEO: ceo,
    payment,
    address,
    ape: Object.values(ape).some((value) => value !== null) ? ape : null,
    vat: vat && namedVat(vat),
    ...further,
    miscellaneous: miscellaneous && miscellaneousItem(miscellaneous),
  }
}

export const companyRow = (
  accountId: string,
  company: z.output<typeof Company>,
): column.FileRow<typeof companyTable> => ({
  accountId,
  name: company.name,
  siren: company.SIREN,
  ceo: company.CEO,
  vatId: company.vat?.producerId,
  apeProducerId: company.ape?.producerId ?? null,
  apeCode: company.ape?.code ?? null,
  apeName: company.ape?.name ?? null,
  ...partyRow(company),
  miscellaneous: company.miscellaneous,
})

const unknown = { ...column.blank(companyTable), ibans: [], contacts: [] }

/** A collective account has none, and neither has one of a file that names none: it has the name of the account. */
export const companyNamed = (name: string): CompanyView => ({ name, ...unknown, payment: null, vat: null })
