/**
 * Running balances, in minor units, of many keys that should each reach zero: entries, letterings. A key at zero is
 * forgotten, so memory depends on what is open at a time rather than on the length of the ledger. The keys left at the
 * end never balanced.
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
