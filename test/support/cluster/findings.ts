/** Counts what must never happen at a failover, and keeps the names that are watched for it. */
import { createHash } from 'node:crypto'

export const faults = [
  'copies that are wrong',
  'stale 304',
  'cursors that name two contents',
  'event numbers that name two events',
  'webhook ids that name two events',
  'ids drawn twice',
  'exports that failed',
  'answers 500',
  'short streams that look whole',
  'commits lost although they were synchronous',
  'events that readers or receivers never got',
  'followers that ended',
] as const

export type Fault = (typeof faults)[number]

/** Most details of one fault: further details say nothing new. */
const detailsMax = 5

export class Findings {
  counts: Partial<Record<Fault, number>> = {}
  details: string[] = []
  /** How often each harmless event has happened. */
  readonly notes: Record<string, number> = {}
  /** SHA-256 of each content, by its name. */
  readonly #contents = new Map<string, string>()
  /** Names that have been counted. */
  readonly #counted = new Set<string>()

  add(fault: Fault, detail: string): void {
    const count = (this.counts[fault] ?? 0) + 1
    this.counts[fault] = count
    if (count <= detailsMax) this.details.push(`${fault}: ${detail}`)
  }

  note(what: string): void {
    this.notes[what] = (this.notes[what] ?? 0) + 1
  }

  /** Adds the fault if the name stood for another content before, once for each name. */
  name(fault: Fault, name: string, content: string): void {
    const digest = createHash('sha256').update(content).digest('hex')
    const before = this.#contents.get(name)
    if (before === undefined) this.#contents.set(name, digest)
    if (before === undefined || before === digest || this.#counted.has(name)) return
    this.#counted.add(name)
    this.add(fault, `${name} stands for ${before.slice(0, 12)} and ${content.slice(0, 160).trimEnd()}`)
  }

  /** The findings since the last call. */
  take(): { counts: Partial<Record<Fault, number>>; details: string[] } {
    const { counts, details } = this
    this.counts = {}
    this.details = []
    return { counts, details }
  }
}

/**
 * Work that repeats until it is paused or stopped. A failure because a server is away is no fault; the next turn tries
 * again.
 */
export interface Loop {
  /** Waits for the end of the present turn. */
  pause(): Promise<void>
  resume(): void
  stop(): Promise<void>
}

/** A request, statement or program did not end. */
export class Unanswered extends Error {}

/** @param onError called with an error of a turn, except Unanswered */
export function repeat(everyMs: number, turn: () => Promise<void>, onError: (error: Error) => void): Loop {
  let state = 'running' as 'running' | 'paused' | 'stopped'
  let wake = Promise.withResolvers<void>()
  let turning: Promise<void> = Promise.resolve()
  const isIn = (wanted: typeof state) => state === wanted
  const loop = (async () => {
    while (!isIn('stopped')) {
      if (isIn('paused')) await wake.promise
      else {
        turning = turn().catch((error) => {
          if (!(error instanceof Unanswered)) onError(error)
        })
        await turning
        await new Promise((resolve) => setTimeout(resolve, everyMs))
      }
    }
  })()
  const change = (next: typeof state) => {
    state = next
    wake.resolve()
    wake = Promise.withResolvers<void>()
  }
  return {
    pause: async () => {
      change('paused')
      await turning
    },
    resume: () => change('running'),
    stop: async () => {
      change('stopped')
      await loop
    },
  }
}
