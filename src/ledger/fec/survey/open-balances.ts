/**
 * Running balances, in minor units, of many things that are each expected to come to zero: entries,
 * letterings. One that is zero is forgotten, so memory follows what is open at a time and not the length of
 * the ledger, and what is left at the end is what never balanced.
 */
export class OpenBalances {
  readonly #balances = new Map<string, bigint>()

  add(key: string, amount: bigint): void {
    if (amount === 0n) return
    const balance = (this.#balances.get(key) ?? 0n) + amount
    if (balance === 0n) this.#balances.delete(key)
    else this.#balances.set(key, balance)
  }

  has(key: string): boolean {
    return this.#balances.has(key)
  }
}
