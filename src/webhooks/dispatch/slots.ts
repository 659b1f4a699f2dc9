/**
 * Which subscriptions a process serves at once: its slots are shared by third party first, by subscription second (pure).
 *
 * An eighth of the slots is kept for third parties that hold none. Of the others a third party takes one only while it
 * holds fewer than are free, and for a slow subscription only while its slow ones hold fewer than half of those. So one
 * that takes all it can get holds half of them, two hold a third each, and some stay free for the next one; a third
 * party whose own receivers are dead has room for its living ones. (A dynamic threshold, as Choudhury and Hahne share the
 * memory of a switch among its ports. By itself it leaves nothing where eight come one after the other and each takes
 * half of what is left, as when a host goes down that many have their receivers on.)
 *
 * A slot that becomes free goes to the third party that holds the fewest. Its subscriptions take turns.
 */

/** Of the slots, for third parties that hold none. */
const newcomersShare = 1 / 8

/** A subscription that has something to be sent. */
export interface Candidate {
  subscriptionId: string
  thirdPartyId: string
  /** Its receiver fails, or takes its time. */
  isSlow: boolean
}

interface Waiting<Of extends Candidate> {
  candidate: Of
  /** In the order in which they began to wait. */
  arrival: number
}

/** What one third party holds and waits for. */
interface Share<Of extends Candidate> {
  held: number
  slowHeld: number
  /** By subscription, in the order of their places. */
  swift: Map<string, Waiting<Of>>
  slow: Map<string, Waiting<Of>>
}

export class Slots<Of extends Candidate> {
  readonly #shares = new Map<string, Share<Of>>()
  readonly #kept: number
  #free: number
  #arrivals = 0

  constructor(count: number) {
    this.#free = count
    this.#kept = count * newcomersShare
  }

  /** It waits for a slot from now on, or as before. It must hold none. */
  wait(candidate: Of): void {
    const { subscriptionId, thirdPartyId, isSlow } = candidate
    const share = this.#shares.get(thirdPartyId) ?? {
      held: 0,
      slowHeld: 0,
      swift: new Map(),
      slow: new Map(),
    }
    this.#shares.set(thirdPartyId, share)
    if (share.swift.has(subscriptionId) || share.slow.has(subscriptionId)) return
    this.#arrivals += 1
    share[isSlow ? 'slow' : 'swift'].set(subscriptionId, { candidate, arrival: this.#arrivals })
  }

  /** Gives a slot to the next one. @returns undefined where none may take one */
  assign(): Of | undefined {
    let best: { share: Share<Of>; next: Waiting<Of> } | undefined
    for (const share of this.#shares.values()) {
      const next = this.#nextOf(share)
      if (!next) continue
      const order = best ? share.held - best.share.held || next.arrival - best.next.arrival : -1
      if (order < 0) best = { share, next }
    }
    if (!best) return undefined
    const { share } = best
    const { candidate } = best.next
    share[candidate.isSlow ? 'slow' : 'swift'].delete(candidate.subscriptionId)
    this.#free -= 1
    share.held += 1
    if (candidate.isSlow) share.slowHeld += 1
    return candidate
  }

  /** Of one that was given by `assign`. */
  release({ thirdPartyId, isSlow }: Of): void {
    const share = this.#shares.get(thirdPartyId)!
    this.#free += 1
    share.held -= 1
    if (isSlow) share.slowHeld -= 1
    if (share.held + share.swift.size + share.slow.size === 0) this.#shares.delete(thirdPartyId)
  }

  /**
   * Whether it is to give way after a delivery: to another one of its own third party, but not to a slow one that could
   * not take its slot; and where none is free, to a third party that holds none.
   */
  mustYield({ thirdPartyId, isSlow }: Of): boolean {
    const share = this.#shares.get(thirdPartyId)!
    if (share.swift.size > 0 || (share.slow.size > 0 && (isSlow || this.#hasRoomForSlow(share)))) return true
    return this.#free === 0 && [...this.#shares.values()].some(({ held }) => held === 0)
  }

  /** Third parties with at least this many swift subscriptions waiting. */
  withWaiting(least: number): Set<string> {
    const found = [...this.#shares].filter(([, { swift }]) => swift.size >= least)
    return new Set(found.map(([thirdPartyId]) => thirdPartyId))
  }

  /** Who of a third party takes the next slot: of those that may, the one that has waited longest. */
  #nextOf(share: Share<Of>): Waiting<Of> | undefined {
    if (share.held >= (share.held === 0 ? this.#free : this.#free - this.#kept)) return undefined
    const swift = first(share.swift)
    const slow = this.#hasRoomForSlow(share) ? first(share.slow) : undefined
    if (!swift || !slow) return swift ?? slow
    return swift.arrival < slow.arrival ? swift : slow
  }

  #hasRoomForSlow({ held, slowHeld }: Share<Of>): boolean {
    return held === 0 || slowHeld < (this.#free - this.#kept) / 2
  }
}

function first<Value>(map: Map<string, Value>): Value | undefined {
  return map.values().next().value
}
