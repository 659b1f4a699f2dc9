/** Roots of account numbers that belong to third parties of the books: suppliers, customers and employees. */
const partyKinds = { '401': 'supplier', '411': 'customer', '421': 'employee' } as const

export type PartyKind = (typeof partyKinds)[keyof typeof partyKinds]

/** Undefined if the account is not a third party's. */
export function partyKind(number: string): PartyKind | undefined {
  const root = number.slice(0, 3)
  return Object.hasOwn(partyKinds, root) ? partyKinds[root as keyof typeof partyKinds] : undefined
}
