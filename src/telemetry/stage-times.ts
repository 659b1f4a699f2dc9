/** Measures the stages of an export. Its time begins in the main thread, so the clock is one that all threads share. */
import type { ExportStage } from './metrics.ts'
import type { StageSeconds } from './telemetry.ts'

/** Seconds of the monotonic clock of the machine. */
export function monotonicSeconds(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds + nanoseconds / 1e9
}

export class StageTimes {
  readonly seconds: StageSeconds = {}
  /** Where the last stage that is over ended. */
  #at: number
  /** Of stages that take turns with the current one. */
  #beside = 0

  /** @param begunAt `monotonicSeconds` of the thread that asked for the export */
  constructor(begunAt: number) {
    this.#at = begunAt
  }

  /** The time since the end of the stage before belongs to this one, but for what `during` measured in it. */
  end(stage: ExportStage): void {
    const now = monotonicSeconds()
    this.#add(stage, Math.max(0, now - this.#at - this.#beside))
    this.#at = now
    this.#beside = 0
  }

  /** Waits, and counts the wait for another stage than the current one. */
  async during<Result>(stage: ExportStage, wait: Promise<Result>): Promise<Result> {
    const began = monotonicSeconds()
    try {
      return await wait
    } finally {
      const took = monotonicSeconds() - began
      this.#add(stage, took)
      this.#beside += took
    }
  }

  #add(stage: ExportStage, seconds: number): void {
    this.seconds[stage] = (this.seconds[stage] ?? 0) + seconds
  }
}
