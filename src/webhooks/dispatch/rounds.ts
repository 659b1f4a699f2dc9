/**
 * Decides whose subscriptions to search next for something to send (pure).
 *
 * A search examines a limited number of subscriptions of each third party. Most have fewer, and are searched whole
 * whenever something is new. A larger one goes through rounds of its own: one part per search, with a pause between
 * parts, from the first subscription to the last; news that arrives meanwhile starts another round. So searching
 * thousands of subscriptions of one third party delays no other. A third party with enough subscriptions waiting for
 * slots is not searched until it has fewer.
 */

/** Schemas that have something new; `all`: whatever there may be. */
type News = ReadonlySet<string> | 'all'

const nothing: News = new Set()

interface Round {
  news: News
  /** The first subscription that is yet to be examined. */
  from: string
  /** For the round after this one. */
  later: News
  /** Milliseconds. */
  notBefore: number
}

export interface Search {
  /** Null: all. */
  schemaIds: string[] | null
  /** Third parties on rounds of their own, with the first subscription to examine. */
  rounds: Map<string, string>
  /** Those are searched (`own`), or all others. */
  whom: 'own' | 'others'
}

export class Rounds {
  readonly #pauseMs: number
  /** For all that are not on rounds of their own. */
  #news: News = nothing
  readonly #own = new Map<string, Round>()

  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs
  }

  /** Something is new in a schema; null: perhaps anywhere. */
  notify(schemaId: string | null): void {
    const news = newsOf(schemaId)
    this.#news = merged(this.#news, news)
    for (const round of this.#own.values()) round.later = merged(round.later, news)
  }

  /** The same, for one third party alone. */
  notifyOne(thirdPartyId: string, schemaId: string | null): void {
    const round = this.#own.get(thirdPartyId)
    if (round) round.later = merged(round.later, newsOf(schemaId))
    else this.#begin(thirdPartyId, newsOf(schemaId))
  }

  /** Everything is to be searched from the beginning. */
  restart(): void {
    this.#own.clear()
    this.#news = 'all'
  }

  /**
   * What is to be searched now; `searched` is to follow for each.
   * @param now milliseconds
   * @param busy third parties that have enough waiting
   */
  searches(now: number, busy: Set<string>): Search[] {
    const found: Search[] = []
    if (!isNothing(this.#news)) {
      for (const thirdPartyId of busy) if (!this.#own.has(thirdPartyId)) this.#begin(thirdPartyId, nothing)
      const rounds = new Map([...this.#own.keys()].map((thirdPartyId) => [thirdPartyId, '0']))
      found.push({ schemaIds: schemasOf(this.#news), rounds, whom: 'others' })
      this.#news = nothing
    }
    const due = [...this.#own].filter(([id, { notBefore }]) => notBefore <= now && !busy.has(id))
    if (due.length > 0) {
      const news = due.reduce<News>((sum, [, round]) => merged(sum, round.news), nothing)
      const rounds = new Map(due.map(([thirdPartyId, { from }]) => [thirdPartyId, from]))
      found.push({ schemaIds: schemasOf(news), rounds, whom: 'own' })
    }
    return found
  }

  /** @param cutOff of whom there are more to examine, from which subscription on */
  searched(search: Search, cutOff: Map<string, string>, now: number): void {
    const notBefore = now + this.#pauseMs
    if (search.whom === 'others') {
      const news = search.schemaIds === null ? 'all' : new Set(search.schemaIds)
      for (const [thirdPartyId, from] of cutOff) {
        // What was told during the search.
        const { news: pending, later } = this.#own.get(thirdPartyId) ?? { news: nothing, later: nothing }
        const missed = merged(this.#news, merged(pending, later))
        this.#own.set(thirdPartyId, { news, from, later: missed, notBefore })
      }
      return
    }
    for (const thirdPartyId of search.rounds.keys()) {
      const round = this.#own.get(thirdPartyId)!
      const from = cutOff.get(thirdPartyId)
      if (from !== undefined) Object.assign(round, { from, notBefore })
      else if (isNothing(round.later)) this.#own.delete(thirdPartyId)
      else Object.assign(round, { news: round.later, from: '0', later: nothing })
    }
  }

  /** When the next search is due: milliseconds, infinite where nothing is new. @param busy as for `searches` */
  dueAt(busy: Set<string>): number {
    if (!isNothing(this.#news)) return Number.NEGATIVE_INFINITY
    const due = [...this.#own].filter(([id]) => !busy.has(id)).map(([, { notBefore }]) => notBefore)
    return Math.min(...due)
  }

  /** With what all others are searched for, which it then is not one of. */
  #begin(thirdPartyId: string, more: News): void {
    const news = merged(this.#news, more)
    this.#own.set(thirdPartyId, { news, from: '0', later: nothing, notBefore: Number.NEGATIVE_INFINITY })
  }
}

function newsOf(schemaId: string | null): News {
  return schemaId === null ? 'all' : new Set([schemaId])
}

function merged(one: News, other: News): News {
  return one === 'all' || other === 'all' ? 'all' : new Set([...one, ...other])
}

function isNothing(news: News): boolean {
  return news !== 'all' && news.size === 0
}

function schemasOf(news: News): string[] | null {
  return news === 'all' ? null : [...news]
}
