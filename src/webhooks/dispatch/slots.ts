/**
 * Decides which subscriptions a process delivers to at once. Slots are shared by third party first, by subscription
 * second (pure).
 *
 * An eighth of the slots is reserved for third parties that hold none. Of the other slots, a third party gets one only
 * while it holds fewer than are free. For its slow subscriptions, the limit is half of that. So a single third party
 * that takes all it can holds half of the slots, two hold a third each, and some stay free for the next one. A third
 * party whose own receivers are partly dead keeps room for its live ones. (This is a dynamic threshold, as Choudhury
 * and Hahne share the memory of a switch among its ports. On its own it leaves no slot free when eight third parties
 * arrive one after the other and each takes half of what is left, for example when a host with all their receivers goes
 * down.)
 *
 * A freed slot goes to the third party that holds the fewest. Its subscriptions take turns: after a delivery, a
 * subscription yields its slot to others of its own third party, and to other third parties only if no slot is free.
 */

/** Share of the slots reserved for third parties that hold none. */
const newcomersShare = 1 / 8

/** A subscription that has something to send. */
export interface Candidate {
  subscriptionId: string
  thirdPartyId: string
  /** Null for all schemas. */
  schemaId: string | null
  /** Whether its receiver fails or is slow. */
  isSlow: boolean
}

interface QueuedSubscription {
  candidate: Candidate
  /** Rises with each subscription that begins to wait. */
  arrival: number
}

/** Waiting subscriptions by id, in order of arrival. */
type Queue = Map<string, QueuedSubscription>

/** The slots that one third party holds, and its waiting subscriptions. */
interface Share {
  held: number
  slowHeld: number
  swift: Queue
  slow: Queue
}

export class Slots {
  readonly #shares = new Map<string, Share>()
  readonly #reserved: number
  #free: number
  #arrivals = 0

  constructor(count: number) {
    this.#free = count
    this.#reserved = count * newcomersShare
  }

  /** Queues a subscription that holds no slot for one. No effect if it waits already. */
  wait(candidate: Candidate): void {
    const { subscriptionId, thirdPartyId, isSlow } = candidate
    const none = { held: 0, slowHeld: 0, swift: new Map(), slow: new Map() }
    const share: Share = this.#shares.get(thirdPartyId) ?? none
    this.#shares.set(thirdPartyId, share)
    if (share.swift.has(subscriptionId) || share.slow.has(subscriptionId)) return
    this.#arrivals += 1
    share[isSlow ? 'slow' : 'swift'].set(subscriptionId, { candidate, arrival: this.#arrivals })
  }

  /** Assigns a slot to the next subscription. @returns undefined if no waiting subscription may have one */
  assign(): Candidate | undefined {
    let best: { share: Share; next: QueuedSubscription } | undefined
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

  /** Releases the slot of a subscription returned by `assign`. */
  release({ thirdPartyId, isSlow }: Candidate): void {
    const share = this.#shares.get(thirdPartyId)!
    this.#free += 1
    share.held -= 1
    if (isSlow) share.slowHeld -= 1
    if (share.held + share.swift.size + share.slow.size === 0) this.#shares.delete(thirdPartyId)
  }

  /**
   * Whether a subscription must yield its slot after a delivery. It yields to a waiting subscription of its own third
   * party that may have the slot. If no slot is free, it also yields to a third party that holds none.
   */
  mustYield({ thirdPartyId, isSlow }: Candidate): boolean {
    const share = this.#shares.get(thirdPartyId)!
    if (share.swift.size > 0 || (share.slow.size > 0 && (isSlow || this.#hasRoomForSlow(share)))) return true
    return this.#free === 0 && [...this.#shares.values()].some(({ held }) => held === 0)
  }

  /** Third parties with at least this many waiting subscriptions that are not slow. */
  withWaiting(least: number): Set<string> {
    const found = [...this.#shares].filter(([, { swift }]) => swift.size >= least)
    return new Set(found.map(([thirdPartyId]) => thirdPartyId))
  }

  /**
   * Returns the next subscription of this third party to get a slot. Of the subscriptions that may have one, it has
   * waited longest.
   */
  #nextOf(share: Share): QueuedSubscription | undefined {
    if (share.held >= (share.held === 0 ? this.#free : this.#free - this.#reserved)) return undefined
    const [swift] = share.swift.values()
    const [slow] = this.#hasRoomForSlow(share) ? share.slow.values() : []
    if (!swift || !slow) return swift ?? slow
    return swift.arrival < slow.arrival ? swift : slow
  }

  #hasRoomForSlow({ held, slowHeld }: Share): boolean {
    return held === 0 || slowHeld < (this.#free - this.#reserved) / 2
  }
}
