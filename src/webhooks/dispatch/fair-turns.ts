/**
 * Shares a few connections among keys, here third parties. The next turn goes to the key with the fewest running
 * transactions; ties go to the key that has waited longest since its last turn. So thousands of transactions of one
 * third party delay another's by at most one.
 */
export class FairTurns {
  readonly #atOnce: number
  /** Waiting work by key. A key comes last when it begins to wait, and again after each of its turns. */
  readonly #waiting = new Map<string, (() => void)[]>()
  readonly #running = new Map<string, number>()
  #runningInAll = 0

  /** @param atOnce maximum number running at once */
  constructor(atOnce: number) {
    this.#atOnce = atOnce
  }

  /** Runs `work` when its turn comes. Work of one key starts in the order of the calls. */
  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    await new Promise<void>((begin) => {
      const queue = this.#waiting.get(key)
      if (queue) queue.push(begin)
      else this.#waiting.set(key, [begin])
      this.#next()
    })
    try {
      return await work()
    } finally {
      this.#runningInAll -= 1
      const left = this.#running.get(key)! - 1
      if (left === 0) this.#running.delete(key)
      else this.#running.set(key, left)
      this.#next()
    }
  }

  #next(): void {
    if (this.#runningInAll >= this.#atOnce) return
    const runningOf = (key: string) => this.#running.get(key) ?? 0
    let chosen: string | undefined
    for (const key of this.#waiting.keys())
      if (chosen === undefined || runningOf(key) < runningOf(chosen)) chosen = key
    if (chosen === undefined) return
    const queue = this.#waiting.get(chosen)!
    const begin = queue.shift()!
    this.#waiting.delete(chosen)
    if (queue.length > 0) this.#waiting.set(chosen, queue)
    this.#running.set(chosen, runningOf(chosen) + 1)
    this.#runningInAll += 1
    begin()
  }
}
