/**
 * The fence of exports that read a replica: none shows less than its request saw. The main database gave the request
 * the cursor of the folder's ledger; a snapshot is good if that cursor names one of its states. A replica that is late
 * gets some time, and so does one that shows another epoch: a new one reaches it with the log. One that is no replica of the
 * main database any more is given up at once.
 *
 * After a promotion, and before the first draw on the new server begins an epoch, a replica may show a state that is lost.
 * Its cursor is of the former epoch, and refused (410) from then on.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { FallbackReason } from '../../telemetry/metrics.ts'
import type { Fence } from '../read/snapshot.ts'
import { type SeenState, type Standing, standingExpression } from './standing.sql.ts'

export class ReplicaUnfit extends Error {
  readonly reason: FallbackReason

  constructor(reason: FallbackReason, message: string) {
    super(message)
    this.name = 'ReplicaUnfit'
    this.reason = reason
  }
}

export interface FenceTiming {
  /** By `performance.now()`: how long a late replica is waited for. */
  until: number
  beginMs: number
}

/** Pauses between two looks at a late replica. A replica that keeps up is late by a few milliseconds. */
const firstPauseMs = 5
const pauseMsMax = 100

/** @param isMain whether the server of this connection is the main database itself, at another address */
export function fenceOf(
  seen: SeenState,
  { until, beginMs }: FenceTiming,
  isMain: (client: pg.ClientBase) => Promise<boolean>,
): Fence<Standing> {
  let pauseMs = firstPauseMs
  return {
    expression: standingExpression(seen),
    beginMs,
    accepts: async (standing, client) => {
      // Its ledgers may change apart from ours, without falling behind.
      if (!standing.isReplica && !(await isMain(client)))
        throw new ReplicaUnfit('promoted', 'It is a server of its own and no replica of the main database')
      if (shows(standing)) return true
      if (performance.now() >= until) throw new ReplicaUnfit('behind', latenessOf(standing))
      await delay(pauseMs)
      pauseMs = Math.min(2 * pauseMs, pauseMsMax)
      return false
    },
  }
}

/** @throws {ReplicaUnfit} if waiting cannot help */
function shows({ refusal }: Standing): boolean {
  switch (refusal) {
    case 'none':
    case 'forgotten':
    case 'rendering':
      return true
    case 'unknown':
      throw new ReplicaUnfit('promoted', 'It belongs to another database than the main one')
    case 'epoch':
    case 'later':
    case null:
      return false
  }
}

function latenessOf({ refusal }: Standing): string {
  if (refusal === 'epoch') return 'It shows the ledgers of another epoch than the main database'
  return refusal === null
    ? 'It does not have a folder of the main database yet'
    : 'It does not show the latest changes of a folder yet'
}
