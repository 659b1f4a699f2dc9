/** Addresses (docs/spec/resources.md#address), with both spellings of the full name. */
import type { z } from 'zod'
import { object, sparse, textOrNull } from '../values.ts'

/** The fields of the composite type `address`, in its order. */
export const addressFields = [
  'number',
  'locatingIndex',
  'streetType',
  'streetName',
  'complement',
  'postalCode',
  'city',
  'country',
] as const
export type Address = Record<(typeof addressFields)[number], string | null>

export const noAddress = Object.fromEntries(addressFields.map((field) => [field, null])) as Address

const members = object({
  addressNumber: textOrNull,
  addressComplement: textOrNull,
  postalCode: textOrNull,
  streetName: textOrNull,
  streetType: textOrNull,
  locatingIndex: textOrNull,
  fullName: textOrNull,
  fullname: textOrNull.meta({ description: 'As fullName' }),
  city: textOrNull,
  country: textOrNull,
}).superRefine(({ fullName, fullname }, context) => {
  if (fullName === null || fullname === null || fullName === fullname) return
  const message = `fullName is "${fullName.slice(0, 60)}": both spellings mean the same, give one of them`
  context.addIssue({ code: 'custom', path: ['fullname'], message, input: fullname })
})

export const AddressItem = sparse(members).meta({ id: 'Address' })
export type FileAddress = z.output<typeof AddressItem>

export function addressItem(address: Address): FileAddress {
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

/**
 * The address to store for an address in a file. Full names are left out, because they are derived from the other
 * members.
 */
export function addressOf(address: FileAddress): Address {
  const { addressNumber, addressComplement, fullName, fullname, ...others } = address
  return { ...others, number: addressNumber, complement: addressComplement }
}
