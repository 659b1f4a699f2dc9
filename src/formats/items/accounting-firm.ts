/** The accounting firm that keeps a folder (docs/spec/resources.md#accountingfirm). */
import type { z } from 'zod'
import { AddressItem } from './accounts/address.ts'
import { id, named, siren, text, textOrNull } from './values.ts'

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

/** The database has its name and its SIRET alone. */
export const accountingFirmItem = ({ id, name, siret }: FirmView): z.input<typeof AccountingFirm> => ({
  producerId: id,
  name,
  siret,
  webSite: null,
  logo: null,
  address: null,
  contact: { mail: null, tel: null, fax: null },
})
