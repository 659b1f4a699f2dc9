/**
 * Time limits, pauses and polling intervals. Code that needs one takes it as an argument, so that a test waits one
 * second where the service waits thirty. Limits on bytes and counts are the same everywhere (`limits`, config.ts).
 */
import { strict as assert } from 'node:assert'

export const defaultTiming = {
  /** Time limits for connections from callers. */
  listener: {
    /** Limit for the headers of a request: long enough for any network. A slow sender occupies only a socket. */
    headersMs: 10_000,
    /** Limit for a request with its body. */
    requestMs: 30_000,
    /** How often the limits of headers and requests are checked. */
    checkMs: 5_000,
    /**
     * A connection is closed if the client reads nothing of an export for this long, at the latest for twice as long:
     * Node notices only at the second time-out that nothing has moved since the first.
     */
    idleMs: 120_000,
  },
  /** Interval for retrying a database server that was unreachable at the start. */
  databaseAwayMs: 1_000,
  /**
   * A dependency that a request found missing keeps the process unready for at least this long, and until the
   * dependency is back.
   */
  missingMs: 5_000,
  /**
   * How long a stopping process may take after DRAIN_SECONDS and STOP_SECONDS. It then abandons dependencies that do
   * not respond, such as a database. A supervisor that kills the process has to wait longer
   * (docs/operators.md#leaving).
   */
  closeMs: 10_000,
  /** How often the certificates of our own addresses are read, as long as metrics are read. */
  certificatesMs: 3_600_000,
  /** Requests to S3. */
  store: {
    /**
     * Tries of one request before the whole upload fails. Pauses double from `retryMs` to `retryMsMax`, so an outage of
     * half a minute costs no export its work.
     */
    tries: 9,
    retryMs: 250,
    retryMsMax: 8_000,
    /** A request fails if no byte moves on its connection for this long. */
    idleMs: 20_000,
    /** How long an aborted upload waits for parts in flight before cutting them off. */
    landingMs: 5_000,
    /** Limit for any request, however slow. 8 MiB in this time is 140 kB/s. */
    requestMs: 60_000,
  },
  /** Full exports, which run as jobs. */
  exports: {
    /** How often a full export reports its progress, and notices that it was cancelled or claimed by another process. */
    renewMs: 500,
    /**
     * How often each process looks for full exports whose process died. A process counts as dead after fifteen seconds
     * without a heartbeat. Including the pause before the next attempt, such exports resume within half a minute.
     */
    superviseSeconds: 5,
    /**
     * Polling interval of the queue: new entries send a notification, but requeued ones are found only by polling. Also
     * the pause before an export that found no free thread is tried again.
     */
    pollSeconds: 2,
    /** How long a stopped full export may take to remove what it wrote. After that the process ends regardless. */
    stopMs: 5_000,
  },
  /** The replica that exports read, if there is one. */
  replica: {
    /**
     * How long an export waits for a late replica to reach the state that its request saw. After that it reads the main
     * database.
     */
    waitMs: 2_000,
    /**
     * How long a replica may be silent at each step: when an export connects, checks the connection, and begins. A
     * healthy replica takes far less, and all three steps together stay below `waitMs`.
     */
    silentMs: 600,
    /** How long a thread that has left the replica waits before it looks at the replica again. */
    leftMs: 5_000,
  },
  /** Requests to subscribers. */
  deliveries: {
    /** Limit from connecting to the end of the response (docs/spec/webhooks.md#deliveries). */
    timeoutMs: 10_000,
    /** A receiver that takes longer than this, or fails, counts as slow. */
    slowMs: 1_000,
    /**
     * Pause between two searches for a third party that has more subscriptions. With it, searches take a tenth of a
     * processor.
     */
    searchPauseMs: 50,
    /** How often each process polls for work that no notification announced: one was lost, or another process died. */
    pollMs: 2_000,
    /** Pause before a lost database is tried again, while there is a response to record. */
    retryMs: 250,
    /** How long requests to subscribers that are in flight may still take when the process stops. */
    stopMs: 5_000,
  },
  /** Sending metrics and traces to a collector. */
  telemetry: {
    /** How often metrics are sent. */
    exportMs: 60_000,
    /** How long a span waits for others, to be sent together with them. */
    spanBatchMs: 2_000,
    /** Limit for one request to the collector, including its retries. */
    sendMs: 5_000,
    /** How long a stopping process tries to send what has not been sent. */
    flushMs: 3_000,
  },
}

export type Timing = typeof defaultTiming
export type ListenerTiming = Timing['listener']
export type StoreTiming = Timing['store']
export type ExportTiming = Timing['exports']
export type ReplicaTiming = Timing['replica']
export type DeliveryTiming = Timing['deliveries']
export type TelemetryTiming = Timing['telemetry']

/** @throws {AssertionError} if two of the times contradict each other */
export function checkTiming({ listener, closeMs, store, exports, deliveries, telemetry }: Timing): void {
  // Otherwise a request with a body could be cut off before its headers are late.
  assert(listener.headersMs <= listener.requestMs, 'the limit for headers exceeds the limit for the request')
  // Exports and deliveries stop beside the responses, which may have ended already; database and store need some time
  // after that.
  for (const each of [exports.stopMs, deliveries.stopMs])
    assert(each < closeMs, 'a stopping process has no time left for its connections')
  assert(telemetry.flushMs < closeMs, 'a stopping process has no time left to send what it has measured')
  assert(store.retryMs <= store.retryMsMax, 'the first pause exceeds the longest pause')
  // Otherwise a silent server would be reported as a slow one, and uploads would fail because of that.
  assert(store.idleMs < store.requestMs, 'a silent request is not distinguished from a slow one')
  assert(deliveries.slowMs < deliveries.timeoutMs, 'a slow answer always exceeds the time limit')
}
