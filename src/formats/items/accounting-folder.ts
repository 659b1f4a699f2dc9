/** The folder that holds the books (docs/spec/resources.md#accountingfolder), and its form in lists of folders. */

import { z } from 'zod'
import { decimal } from '../minor-units.ts'
import { type Address, AddressItem, addressItem, addressOf } from './accounts/address.ts'
import * as column from './table.ts'
import { amount, id, named, object, siren, sparse, text, textOrNull } from './values.ts'

const textOrNone = column.orNull(column.text)
export const folderTable = {
  name: 'folders',
  columns: {
    ...{ schemaId: column.reference, id: column.id, firmId: column.reference },
    ...{ name: column.text, reference: textOrNone, siret: textOrNone, currency: column.text },
    /** Minor units. */
    capital: column.column<bigint>('plain'),
    address: column.column<Address>('address'),
    contactFirstName: textOrNone,
    contactLastName: textOrNone,
    contactPhoneNumber: textOrNone,
    contactMobilePhoneNumber: textOrNone,
    contactMail: textOrNone,
    ...{ rcsProducerId: column.text, rcsName: column.text },
  },
}
type FolderRow = column.RowOf<typeof folderTable>
/** The values that a new folder may have. Its books are kept in euro by default. */
export type FolderContent = Pick<FolderRow, 'name'> & Partial<Omit<FolderRow, 'schemaId' | 'id' | 'firmId'>>

export type FolderView = Omit<FolderRow, 'schemaId' | 'id' | 'firmId' | 'currency' | 'capital'> & {
  /** Digits of minor units. */
  capital: string
}

export const AccountingFolder = sparse(
  object({
    name: text,
    reference: textOrNull,
    address: AddressItem,
    contact: sparse(
      object({
        firstName: textOrNull,
        lastName: textOrNull,
        phoneNumber: textOrNull,
        mobilePhoneNumber: textOrNull,
        mail: textOrNull,
      }),
    ).meta({ id: 'FolderContact' }),
    RCS: named('TradeRegister', { producerId: text, name: text }),
    SIRET: siren,
    capital: amount,
  }),
).meta({ id: 'AccountingFolder' })
export type FileFolder = z.output<typeof AccountingFolder>

export function accountingFolderItem(folder: FolderView): z.input<typeof AccountingFolder> {
  return {
    name: folder.name,
    reference: folder.reference,
    address: addressItem(folder.address),
    contact: {
      firstName: folder.contactFirstName,
      lastName: folder.contactLastName,
      phoneNumber: folder.contactPhoneNumber,
      mobilePhoneNumber: folder.contactMobilePhoneNumber,
      mail: folder.contactMail,
    },
    RCS: { producerId: folder.rcsProducerId, name: folder.rcsName },
    SIRET: folder.siret,
    capital: decimal(folder.capital, 2),
  }
}

export function folderContent({
  name,
  reference,
  address,
  contact,
  RCS,
  SIRET,
  capital,
}: FileFolder): FolderContent {
  return {
    ...{ name, reference, siret: SIRET, capital, address: addressOf(address) },
    contactFirstName: contact.firstName,
    contactLastName: contact.lastName,
    contactPhoneNumber: contact.phoneNumber,
    contactMobilePhoneNumber: contact.mobilePhoneNumber,
    contactMail: contact.mail,
    rcsProducerId: RCS.producerId,
    rcsName: RCS.name,
  }
}

/** A folder that a token may read. */
export const Society = z
  .object({ id: text, name: text, reference: textOrNull, SIRET: textOrNull })
  .meta({ id: 'Society' })

/** The accounting firm that keeps a folder (docs/spec/resources.md#accountingfirm). */

export interface FirmView {
  id: string
  name: string
  siret: string | null
}

export const AccountingFirm = named('AccountingFirm', {
  producerId: id,
  name: text,
  siret: siren,
  webSite: textOrNull,
  logo: textOrNull,
  address: AddressItem.nullable(),
  contact: named('FirmContact', { mail: textOrNull, tel: textOrNull, fax: textOrNull }),
})

/** The other members are null: the database has only the firm's name and SIRET. */
export const accountingFirmItem = ({ id, name, siret }: FirmView): z.input<typeof AccountingFirm> => ({
  producerId: id,
  name,
  siret,
  webSite: null,
  logo: null,
  address: null,
  contact: { mail: null, tel: null, fax: null },
})
