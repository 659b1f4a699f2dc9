/**
 * Rows of a folder's collections as exports read them: those of the tables, with the referenced rows in place of their
 * ids. `ledger/collections.sql.ts` reads them; each format renders them.
 */
import type {
  AccountRow,
  Address,
  AxisRow,
  BankRow,
  CompanyRow,
  Contact,
  EmployeeRow,
  ExerciceRow,
  JournalRow,
  Miscellaneous,
  PaymentRow,
  SectionRow,
  VatCodeRow,
} from './rows.ts'

/** As responses of the service show it. */
export interface SimplifiedAccount {
  producerId: string
  number: string
  name: string
}

/** The sums of an account, as digits of minor units. */
export interface BalanceView extends Pick<AccountRow, 'id' | 'number' | 'name'> {
  debit: string
  credit: string
  /** Debit minus credit. */
  balance: string
}

export interface FolderView {
  name: string
  reference: string | null
  address: Address
  contactFirstName: string | null
  contactLastName: string | null
  contactPhoneNumber: string | null
  contactMobilePhoneNumber: string | null
  contactMail: string | null
  rcsProducerId: string
  rcsName: string
  siret: string | null
  /** Digits of minor units. */
  capital: string
}

export type PaymentView = Pick<PaymentRow, 'id' | 'code'>
export type VatCodeView = Pick<VatCodeRow, 'id' | 'code' | 'rate'>

export interface BankView extends Pick<BankRow, 'id' | 'rib' | 'iban' | 'bic' | 'journalId' | 'isDefault'> {
  account: SimplifiedAccount | null
  journalName: string
  journalCode: string
}

export interface JournalView extends Pick<JournalRow, 'id' | 'name' | 'code' | 'type' | 'locked'> {
  counterpartAccount: SimplifiedAccount | null
}

export interface AxisView extends Pick<AxisRow, 'id' | 'code' | 'name' | 'defaultSectionId'> {
  sections: Pick<SectionRow, 'id' | 'code' | 'name' | 'accountRoots' | 'closed'>[]
}

export interface ExerciceView
  extends Pick<ExerciceRow, 'id' | 'lettering' | 'closedById' | 'closedByFirstName' | 'closedByLastName'> {
  /** Both days inclusive, `YYYY-MM-DD`. */
  start: string
  end: string
  /** The day it was closed, in the time zone of the platform, `YYYY-MM-DD`; null if open. */
  closedOn: string | null
}

export interface AccountView extends Pick<AccountRow, 'id' | 'number' | 'name' | 'closed'> {
  counterpartAccount: SimplifiedAccount | null
  correspondanceAccount: SimplifiedAccount | null
  company: CompanyView | null
  employee: EmployeeView | null
}

/** The company or employee of an account. Stored members may be missing and have no fixed order. */
interface PartyView {
  payment: PaymentView | null
  contacts: Partial<Contact>[]
  miscellaneous: Partial<Miscellaneous> | null
}

export interface CompanyView
  extends PartyView,
    Pick<CompanyRow, 'name' | 'siren' | 'ceo' | 'address' | 'ibans'> {
  ape: { producerId: string | null; code: string | null; name: string | null } | null
  vat: VatCodeView | null
}

export interface EmployeeView
  extends PartyView,
    Pick<
      EmployeeRow,
      | 'firstName'
      | 'lastName'
      | 'email'
      | 'phoneNumber'
      | 'phoneNumberBis'
      | 'nir'
      | 'profession'
      | 'address'
      | 'ibans'
    > {
  doubtfulAccount: SimplifiedAccount | null
}
