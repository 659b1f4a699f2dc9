/** What ways consumed, round by round, and how they compare. */
import type { Usage } from './measure.ts'
import { median } from './statistics.ts'

/** The database's own COPYs of what an export reads, over two connections. Every ratio to the floor is to this one. */
export const floorName = 'floor: two COPYs to nowhere'
/** The same year as one statement, over one connection: what people would write. */
export const joinedName = 'one joined COPY to nowhere'
/** They render nothing. */
export const namesOfCopies: readonly string[] = [floorName, joinedName]
export const oursName = 'Grandlivre'
/** The other ways compute no digest of what they send, either. */
export const withoutDigestName = `${oursName}, without digest`

/** One run of a way. */
export interface Transfer {
  ms: number
  /** Null if the response is a file that is fetched later. */
  firstByteMs: number | null
  /** Bytes over the wire, or of the file. Null if nothing is read. */
  bytes: number | null
  /** Movements, if the response says how many. */
  rows: number | null
  /** Hexadecimal, if the response says it. */
  sha256?: string | null
}

/** What one way consumed in one round. */
export interface Sample extends Transfer, Usage {
  /** CPU time of the bench itself, which reads the response: part of the load on the machine. */
  clientCpuMs: number
}

/** A line of the table. */
export interface Row {
  name: string
  /** One per round. */
  samples: Sample[]
  /** Of a request sent many times; `samples` then has one element, with medians and averages of all. */
  p99Ms?: number
}

export function medianMs({ samples }: Row): number {
  return median(samples.map(({ ms }) => ms))
}

/** To another way that took turns with it: of the times of each round. */
export function ratiosOf(row: Row, other: Row): number[] {
  return row.samples.map(({ ms }, round) => ms / other.samples[round]!.ms)
}
