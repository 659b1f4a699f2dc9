/** A repeatable source of randomness (mulberry32): the same seed gives the same numbers on every machine. */
export class Random {
  #state: number

  /** @param seed a whole number, of which only the low 32 bits are used */
  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** A fraction from 0 to 1, excluding 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }

  /** A whole number between the two, including both. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1))
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.fraction() * items.length)]!
  }

  digits(count: number): string {
    return Array.from({ length: count }, () => this.integer(0, 9)).join('')
  }

  /**
   * An amount of money in cents between two powers of ten. Each order of magnitude is as likely as the next, as in real
   * books, and a third of the amounts are whole euros.
   */
  cents(leastPower: number, mostPower: number): bigint {
    const cents = BigInt(Math.floor(10 ** (leastPower + this.fraction() * (mostPower - leastPower))))
    return this.chance(1 / 3) ? (cents / 100n + 1n) * 100n : cents
  }
}
