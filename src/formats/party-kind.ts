/** Digits and capitals, without accents: `Café-1` is CAFE1. Empty if nothing is left. */
export function accountNumber(filed: string): string {
  if (/^[0-9A-Z]*$/.test(filed)) return filed
  return filed
    .normalize('NFD')
    .toUpperCase()
    .replace(/[^0-9A-Z]/g, '')
}

/** Roots of account numbers that belong to third parties of the books: suppliers, customers and employees. */
const partyKinds = { '401': 'supplier', '411': 'customer', '421': 'employee' } as const

export type PartyKind = (typeof partyKinds)[keyof typeof partyKinds]

/** Undefined if the account is not a third party's. */
export function partyKind(number: string): PartyKind | undefined {
  const root = number.slice(0, 3)
  return Object.hasOwn(partyKinds, root) ? partyKinds[root as keyof typeof partyKinds] : undefined
}
