/**
 * Where the exports of a thread read: a replica if there is one and it is fit, otherwise the main database. No request
 * fails because of the replica, and each export shows at least the state that its request saw.
 *
 * A replica found unfit is left for a while, so that not every request finds out again. The thread itself checks
 * whether the replica is fit again. While the replica is late, requests still begin there, without waiting, because
 * many folders have not changed. While it cannot be read, all exports read the main database.
 */

import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { limits } from '../../config.ts'
import { isDatabaseFailure } from '../../db/outage.ts'
import { countError, countTimeout } from '../../db/pool.ts'
import type { FallbackReason } from '../../telemetry/metrics.ts'
import type { ThreadedTelemetry } from '../../telemetry/telemetry.ts'
import type { ReplicaTiming } from '../../timing.ts'
import { type Fence, NotAdmitted, openSnapshot, type Snapshot } from '../read/snapshot.ts'
import { epochOf, readServer, type SeenState, type ShownState, shownExpression } from './replica.sql.ts'

/** The thread has left the replica, or reads it again. The message says why, for staff. */
export interface ReplicaNews {
  left: { reason: FallbackReason; message: string } | undefined
}

/** A message of a thread. */
export interface ThreadNews {
  replica: ReplicaNews & { threadId: number }
}

/**
 * Connections of a thread for checks whether a replica that it has left is fit again. The connections of exports may all
 * be in use for hours, and a check that waited for one would find the replica silent.
 */
export const lookConnections = 2

interface Replica {
  /** Has `lookConnections` more connections than the exports of the thread use. */
  pool: pg.Pool
  timing: ReplicaTiming
  /**
   * Called when the thread leaves the replica, when the reason for that changes, and when it reads the replica again.
   */
  report: (news: ReplicaNews) => void
  telemetry: Pick<ThreadedTelemetry, 'count'>
}

interface SnapshotNeed {
  schemaId: string
  /** The state that the snapshot must at least show. If undefined, only the main database certainly shows enough. */
  seen: SeenState | undefined
  /** Whether the replica has failed this export, which now reads the main database. */
  isAgain?: boolean
}

export interface ExportSnapshot extends Snapshot {
  isOfReplica: boolean
  /** The state that the snapshot had to show. */
  seen: SeenState | undefined
}

export class ExportSources {
  readonly #main: pg.Pool
  readonly #replica: Replica | undefined
  /**
   * Why the thread has left the replica, and what the replica must show to be read again; undefined while it is read.
   */
  #left: { reason: FallbackReason; seen: SeenState } | undefined
  /** The last server found to be the main database. */
  #mainServer: string | undefined

  /** @param replica if undefined, exports read the main database */
  constructor(main: pg.Pool, replica?: Replica) {
    this.#main = main
    this.#replica = replica
  }

  /** @throws {AppError} ERR-UNAVAILABLE if the main database gives no connections in time */
  async open({ schemaId, seen, isAgain = false }: SnapshotNeed): Promise<ExportSnapshot> {
    const replica = this.#replica
    if (replica && seen && !isAgain) {
      const mayBeRead = this.#left === undefined || this.#left.reason === 'behind'
      const waitMs = this.#left === undefined ? replica.timing.waitMs : 0
      const snapshot = mayBeRead && (await this.#openReplica(replica, seen, waitMs))
      if (snapshot) return snapshot
      replica.telemetry.count('grandlivre.replica.fallbacks', { reason: this.#left?.reason ?? 'behind' })
    }
    return { ...(await openSnapshot(this.#main, schemaId)), isOfReplica: false, seen }
  }

  /**
   * Ends one state and begins the next, for an answer of many ledgers. Keeps the connections if the next ledger may be
   * read there.
   * @param before a snapshot with nothing left to read
   * @throws {AppError} as `open`
   */
  async next(before: ExportSnapshot, source: SnapshotNeed): Promise<ExportSnapshot> {
    try {
      if (!this.#replica)
        return { ...(await before.next(source.schemaId)), isOfReplica: false, seen: source.seen }
      // Only a new snapshot can show whether the server has the next ledger.
      await before.close()
    } catch (error) {
      // The connections were lost between two ledgers: no row is missing.
      if (!isDatabaseFailure(error)) throw error
    }
    return this.open(source)
  }

  /**
   * Whether a failed export must begin again on the main database, because the replica failed it. A server that is
   * the main database at another address does not count as a replica.
   */
  failed({ isOfReplica, seen }: ExportSnapshot, error: unknown): boolean {
    if (!isOfReplica || !seen || !isDatabaseFailure(error)) return false
    this.#leave(this.#replica!, seen, error)
    this.#replica!.telemetry.count('grandlivre.replica.fallbacks', { reason: reasonOf(error) })
    return true
  }

  /** Counts an error of the database for operators, also if no connection was free in time. */
  count(error: unknown): void {
    if (error instanceof NotAdmitted) countTimeout(this.#main)
    else countError(this.#main, error)
  }

  async #openReplica(replica: Replica, seen: SeenState, waitMs: number): Promise<ExportSnapshot | undefined> {
    try {
      const snapshot = await this.#begin(replica, seen, waitMs)
      // After a failover, no server shows a state of the former epoch again.
      if (this.#left && epochOf(this.#left.seen) !== epochOf(seen)) this.#left.seen = seen
      return snapshot
    } catch (error) {
      this.#leave(replica, seen, error)
      return undefined
    }
  }

  /**
   * Opens a snapshot on the replica that shows at least what its request saw: the main database gave the request the
   * cursor of the folder's ledger, and that cursor must name one of the states of the snapshot. A replica that is late
   * gets some time. So does one that shows another epoch: the log brings it the new one. A server that is no longer a
   * replica of the main database is given up at once.
   *
   * After a promotion, and before the first draw on the new server begins an epoch, a replica may show a state that is
   * lost. The cursor of that state is of the former epoch, and is refused (410) from then on.
   * @param waitMs how long to wait for a late replica
   */
  async #begin({ pool, timing }: Replica, seen: SeenState, waitMs: number): Promise<ExportSnapshot> {
    const until = performance.now() + waitMs
    let isOfReplica = true
    let pauseMs = firstPauseMs
    const fence: Fence<ShownState> = {
      expression: shownExpression(seen),
      beginMs: timing.silentMs,
      accepts: async ({ isReplica, refusal }, client) => {
        isOfReplica = isReplica
        // A server that is no replica is unfit: its ledgers may change apart from ours, without falling behind.
        if (!isReplica && !(await this.#isMain(client)))
          throw new ReplicaUnfit('promoted', 'It is a server of its own and no replica of the main database')
        if (refusal === 'unknown')
          throw new ReplicaUnfit('promoted', 'It belongs to another database than the main one')
        const lateness = latenessBy[`${refusal}`]
        if (lateness === undefined) return true
        if (performance.now() >= until) throw new ReplicaUnfit('behind', lateness)
        await delay(pauseMs)
        pauseMs = Math.min(2 * pauseMs, pauseMsMax)
        return false
      },
    }
    const admission = { waitMs: timing.silentMs, halfMs: limits.halfSnapshotMs }
    const snapshot = await openSnapshot(pool, seen.schemaId, admission, fence)
    return { ...snapshot, isOfReplica, seen }
  }

  /** Whether the server of this connection is the main database itself, at another address. */
  async #isMain(client: pg.ClientBase): Promise<boolean> {
    const server = await readServer(client)
    if (server !== this.#mainServer) this.#mainServer = await readServer(this.#main)
    return server === this.#mainServer
  }

  #leave(replica: Replica, seen: SeenState, error: unknown): void {
    const before = this.#left
    const reason = reasonOf(error)
    this.#left = { reason, seen }
    if (before?.reason === reason) return
    replica.report({ left: { reason, message: messageOf(error) } })
    if (!before) this.#returnLater(replica)
  }

  #returnLater(replica: Replica): void {
    setTimeout(async () => {
      const { seen } = this.#left!
      try {
        await (await this.#begin(replica, seen, 0)).close()
        this.#left = undefined
        replica.report({ left: undefined })
      } catch (error) {
        this.#leave(replica, seen, error)
        this.#returnLater(replica)
      }
    }, replica.timing.leftMs).unref()
  }
}

/**
 * SQLSTATEs of conflicts with recovery. Nothing else gives them to a transaction that only reads one state of a
 * database.
 */
const conflicts = ['40001', '40P01']

function reasonOf(error: unknown): FallbackReason {
  if (error instanceof ReplicaUnfit) return error.reason
  return error instanceof pg.DatabaseError && conflicts.includes(error.code ?? '') ? 'conflict' : 'away'
}

/** The message of the innermost cause of an error, since errors around it only say that something is missing. */
function messageOf(error: unknown): string {
  if (error instanceof NotAdmitted) return 'It did not begin two transactions in time'
  const { message, cause } = error instanceof Error ? error : new Error(String(error))
  return cause instanceof Error ? messageOf(cause) : message
}

/** The replica, or the server at its address, does not show what an export needs. */
class ReplicaUnfit extends Error {
  readonly reason: FallbackReason

  constructor(reason: FallbackReason, message: string) {
    super(message)
    this.name = 'ReplicaUnfit'
    this.reason = reason
  }
}

/** Pauses between two looks at a late replica. A replica that keeps up is late by a few milliseconds. */
const firstPauseMs = 5
const pauseMsMax = 100

/** How the replica is late, by the reason why it refuses a state. Undefined: it shows the state. */
const latenessBy = {
  none: undefined,
  forgotten: undefined,
  rendering: undefined,
  epoch: 'It shows the ledgers of another epoch than the main database',
  later: 'It does not show the latest changes of a folder yet',
  null: 'It does not have a folder of the main database yet',
} satisfies Record<`${Exclude<ShownState['refusal'], 'unknown'>}`, string | undefined>
