export interface AddressRow {
  number: string | null
  locatingIndex: string | null
  streetType: string | null
  streetName: string | null
  complement: string | null
  postalCode: string | null
  city: string | null
  country: string | null
}

/** Address (interface, section 2.1; contract, section 4), with both spellings of the full name. */
export function addressItem(address: AddressRow): object {
  const { number, locatingIndex, streetType, streetName } = address
  const fullName =
    number && streetType && streetName
      ? [number, locatingIndex, streetType, streetName].filter(Boolean).join(' ')
      : null
  return {
    addressNumber: number,
    addressComplement: address.complement,
    postalCode: address.postalCode,
    streetName,
    streetType,
    locatingIndex,
    fullName,
    fullname: fullName,
    city: address.city,
    country: address.country,
  }
}
