/** The folder of the books (docs/spec/resources.md#accountingfolder), and what lists of folders have of it. */
import { z } from 'zod'
import { decimal } from '../minor-units.ts'
import { type Address, AddressItem, addressItem } from './accounts/address.ts'
import { amount, named, object, siren, sparse, text, textOrNull } from './values.ts'

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

/** A folder that a token opens. */
export const Society = z
  .object({ id: text, name: text, reference: textOrNull, SIRET: textOrNull })
  .meta({ id: 'Society' })
