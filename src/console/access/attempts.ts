/** How often sign-ins from an address may fail. Pure, but for its memory. */
import { limits } from '../../config.ts'

/** Addresses that are remembered. */
const addressesMax = 1_000

export class Attempts {
  readonly #failed = new Map<string, { since: number; count: number }>()
  readonly #now: () => number

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Milliseconds until this address may try again; 0: now. */
  waitMs(address: string): number {
    const failed = this.#failed.get(address)
    if (!failed || failed.count < limits.consoleAttemptsMax) return 0
    return Math.max(0, failed.since + limits.consoleAttemptsMs - this.#now())
  }

  /** Counts an attempt before it is known to fail: those that run at once count, too. */
  begin(address: string): void {
    const now = this.#now()
    const before = this.#failed.get(address)
    const isOver = !before || now - before.since >= limits.consoleAttemptsMs
    this.#failed.delete(address)
    this.#failed.set(address, isOver ? { since: now, count: 1 } : { ...before, count: before.count + 1 })
    // The oldest goes: an attacker with many addresses guesses no key either.
    if (this.#failed.size > addressesMax) this.#failed.delete(this.#failed.keys().next().value!)
  }

  /** An attempt that has not failed does not count. */
  forgive(address: string): void {
    const failed = this.#failed.get(address)
    if (failed) failed.count = Math.max(0, failed.count - 1)
  }
}
