/** Roots of account numbers whose accounts are third parties of the books: each one a supplier, customer or employee. */
const partyKinds = { '401': 'supplier', '411': 'customer', '421': 'employee' } as const

export type PartyKind = (typeof partyKinds)[keyof typeof partyKinds]

/** Undefined for the account of no third party. */
export function partyKind(number: string): PartyKind | undefined {
  const root = number.slice(0, 3)
  return Object.hasOwn(partyKinds, root) ? partyKinds[root as keyof typeof partyKinds] : undefined
}
