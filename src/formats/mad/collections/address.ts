import type { Address } from '../../rows.ts'

/** Address (docs/spec/resources.md#address), with both spellings of the full name. */
export function addressItem(address: Address) {
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
