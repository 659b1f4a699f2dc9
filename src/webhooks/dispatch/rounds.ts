/**
 * Decides which third parties' subscriptions to search next for something to send (pure).
 *
 * A search examines a limited number of subscriptions of each third party. Most third parties have fewer, and all of
 * their subscriptions are searched whenever something is new. A third party with more goes through rounds of its own,
 * from its first subscription to its last: one part per search, with a pause between parts. News that arrives during a
 * round starts another one. So searching thousands of subscriptions of one third party does not delay others. A third
 * party with enough subscriptions waiting for slots is not searched until fewer wait.
 */

/** Schemas with new events; null: possibly every schema. */
type News = readonly string[] | null

const noNews: News = []

interface Round {
  news: News
  /** The first subscription not examined yet. */
  from: string
  /** News that arrived during this round, for the next one. */
  later: News
  /** The earliest time of the next search, in milliseconds. */
  notBefore: number
}

export interface Search {
  schemaIds: News
  /** Third parties on rounds of their own: for each id, the first subscription to examine. */
  rounds: Map<string, string>
  /** Whether to search the third parties on rounds of their own (`own`) or all others. */
  whom: 'own' | 'others'
}

export class Rounds {
  readonly #pauseMs: number
  /** News for all third parties that are not on rounds of their own. */
  #news: News = noNews
  readonly #own = new Map<string, Round>()

  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs
  }

  /** Reports that a schema has something new; null: possibly every schema. */
  notify(schemaId: string | null): void {
    const news = schemaId === null ? null : [schemaId]
    this.#news = merged(this.#news, news)
    for (const round of this.#own.values()) round.later = merged(round.later, news)
  }

  /** As `notify`, for one third party only. */
  notifyOne(thirdPartyId: string, schemaId: string | null): void {
    const news = schemaId === null ? null : [schemaId]
    const round = this.#own.get(thirdPartyId)
    if (round) round.later = merged(round.later, news)
    else this.#begin(thirdPartyId, news)
  }

  /** Searches everything again from the beginning. */
  restart(): void {
    this.#own.clear()
    this.#news = null
  }

  /**
   * Returns the searches to run now; call `searched` after each.
   * @param now milliseconds
   * @param busy third parties with enough subscriptions waiting
   */
  searches(now: number, busy: Set<string>): Search[] {
    const found: Search[] = []
    if (!isNoNews(this.#news)) {
      for (const thirdPartyId of busy) if (!this.#own.has(thirdPartyId)) this.#begin(thirdPartyId, noNews)
      const rounds = new Map([...this.#own.keys()].map((thirdPartyId) => [thirdPartyId, '0']))
      found.push({ schemaIds: this.#news, rounds, whom: 'others' })
      this.#news = noNews
    }
    const due = [...this.#own].filter(([id, { notBefore }]) => notBefore <= now && !busy.has(id))
    if (due.length > 0) {
      const news = due.reduce<News>((sum, [, round]) => merged(sum, round.news), noNews)
      const rounds = new Map(due.map(([thirdPartyId, { from }]) => [thirdPartyId, from]))
      found.push({ schemaIds: news, rounds, whom: 'own' })
    }
    return found
  }

  /** @param cutOff third parties that have more to examine: for each id, the next subscription */
  searched(search: Search, cutOff: Map<string, string>, now: number): void {
    const notBefore = now + this.#pauseMs
    if (search.whom === 'others') {
      for (const [thirdPartyId, from] of cutOff) {
        // News that arrived during the search.
        const { news: pending, later } = this.#own.get(thirdPartyId) ?? { news: noNews, later: noNews }
        const missed = merged(this.#news, merged(pending, later))
        this.#own.set(thirdPartyId, { news: search.schemaIds, from, later: missed, notBefore })
      }
      return
    }
    for (const thirdPartyId of search.rounds.keys()) {
      const round = this.#own.get(thirdPartyId)!
      const from = cutOff.get(thirdPartyId)
      if (from !== undefined) Object.assign(round, { from, notBefore })
      else if (isNoNews(round.later)) this.#own.delete(thirdPartyId)
      else Object.assign(round, { news: round.later, from: '0', later: noNews })
    }
  }

  /** Time of the next search in milliseconds; infinite if nothing is new. @param busy as for `searches` */
  dueAt(busy: Set<string>): number {
    if (!isNoNews(this.#news)) return Number.NEGATIVE_INFINITY
    const due = [...this.#own].filter(([id]) => !busy.has(id)).map(([, { notBefore }]) => notBefore)
    return Math.min(...due)
  }

  /**
   * Starts a round for a third party that was searched with all the others until now. The round begins with the news of
   * the others.
   */
  #begin(thirdPartyId: string, more: News): void {
    const news = merged(this.#news, more)
    this.#own.set(thirdPartyId, { news, from: '0', later: noNews, notBefore: Number.NEGATIVE_INFINITY })
  }
}

function merged(one: News, other: News): News {
  return one && other && [...new Set([...one, ...other])]
}

function isNoNews(news: News): boolean {
  return news?.length === 0
}
