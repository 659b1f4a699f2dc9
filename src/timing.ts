/**
 * Time-outs, pauses and polling intervals. They are arguments of what they bound, so that a test waits one second where
 * the service waits thirty. Bounds on bytes and counts are the same everywhere (`limits`, config.ts).
 */
import { strict as assert } from 'node:assert'

/** Connections from callers. */
export interface ListenerTiming {
  /** For the headers of a request. A slow sender occupies only a socket; long enough for any network. */
  headersMs: number
  /** For a request with its body. */
  requestMs: number
  /** How often both are checked. */
  checkMs: number
  /**
   * A connection is closed if the client reads nothing of an export for this long, at the latest after twice that: Node
   * notices only at the second time-out that nothing has moved since the first.
   */
  idleMs: number
}

/** Requests to S3. */
export interface StoreTiming {
  /**
   * Tries of one request before the whole upload fails. Pauses double from `retryMs` to `retryMsMax`: an outage of half
   * a minute costs no export its work.
   */
  tries: number
  retryMs: number
  retryMsMax: number
  /** A request fails if no byte moves on its connection for this long. */
  idleMs: number
  /** How long an aborted upload waits for parts in flight before cutting them off. */
  landingMs: number
  /** Limit for any request, however slow. 8 MiB within it is 140 kB/s. */
  requestMs: number
}

/** Full exports as jobs. */
export interface ExportTiming {
  /** How often a full export reports its progress, and notices that it was cancelled or claimed by another process. */
  renewMs: number
  /**
   * How often each process looks for full exports whose process died, which is known after fifteen seconds without a
   * heartbeat. Including the pause before the next attempt, they resume within half a minute.
   */
  superviseSeconds: number
  /**
   * Polling interval of the queue: new entries send a notification, requeued ones are found only by polling. Also the
   * delay before retrying an export that found no free thread.
   */
  pollSeconds: number
  /** How long a stopped full export may take to remove what it wrote, before the process ends regardless. */
  stopMs: number
}

/** A replica that exports read. */
export interface ReplicaTiming {
  /** How long an export waits for a late replica to show what its request saw. Then it reads the main database. */
  waitMs: number
  /**
   * How long a replica may be silent when an export connects, checks the connection and begins, each. Far more than one
   * that is well takes, and less than `waitMs` in all.
   */
  silentMs: number
  /** A thread that has left the replica looks at it again after this time. */
  leftMs: number
}

/** Requests to subscribers. */
export interface DeliveryTiming {
  /** From connecting to the end of the response (docs/spec/webhooks.md#deliveries). */
  timeoutMs: number
  /** A receiver that takes longer than this, or fails, counts as slow. */
  slowMs: number
  /**
   * Pause between two searches for a third party that has more subscriptions: searches then take a tenth of a
   * processor.
   */
  searchPauseMs: number
  /** How often each process polls for what no notification announced: a lost notification, another process's death. */
  pollMs: number
  /** Pause before retrying a lost database, while there is a response to record. */
  retryMs: number
  /** How long requests in flight to subscribers may finish when the process stops. */
  stopMs: number
}

/** Metrics and traces that are sent to a collector. */
export interface TelemetryTiming {
  /** How often metrics are sent. */
  exportMs: number
  /** How long spans wait for others to be sent with them. */
  spanBatchMs: number
  /** Limit for one request to the collector, with its retries. */
  sendMs: number
  /** How long a stopping process tries to send what is left. */
  flushMs: number
}

export interface Timing {
  listener: ListenerTiming
  /** Interval for retrying a database server that was unreachable at the start. */
  databaseAwayMs: number
  /** A dependency that a request found missing keeps the process unready for this long, and until it is back. */
  missingMs: number
  /** How long SIGTERM waits for running responses. */
  drainMs: number
  /**
   * How long a process may take to stop in all: `drainMs`, and some seconds for the rest. Less than docker-compose.yml
   * allows. Dependencies that do not respond, such as a database, are then abandoned.
   */
  stopMs: number
  /** How often the certificates of our own addresses are read, while metrics are. */
  certificatesMs: number
  store: StoreTiming
  exports: ExportTiming
  replica: ReplicaTiming
  deliveries: DeliveryTiming
  telemetry: TelemetryTiming
}

export const defaultTiming: Timing = {
  listener: { headersMs: 10_000, requestMs: 30_000, checkMs: 5_000, idleMs: 120_000 },
  databaseAwayMs: 1_000,
  missingMs: 5_000,
  drainMs: 25_000,
  stopMs: 35_000,
  certificatesMs: 3_600_000,
  store: {
    tries: 9,
    retryMs: 250,
    retryMsMax: 8_000,
    idleMs: 20_000,
    landingMs: 5_000,
    requestMs: 60_000,
  },
  exports: { renewMs: 500, superviseSeconds: 5, pollSeconds: 2, stopMs: 5_000 },
  replica: { waitMs: 2_000, silentMs: 600, leftMs: 5_000 },
  deliveries: {
    timeoutMs: 10_000,
    slowMs: 1_000,
    searchPauseMs: 50,
    pollMs: 2_000,
    retryMs: 250,
    stopMs: 5_000,
  },
  telemetry: { exportMs: 60_000, spanBatchMs: 2_000, sendMs: 5_000, flushMs: 3_000 },
}

/** @throws {AssertionError} if two of them contradict each other */
export function checkTiming({
  listener,
  drainMs,
  stopMs,
  store,
  exports,
  deliveries,
  telemetry,
}: Timing): void {
  // Otherwise a request with a body would be cut off before its headers are late.
  assert(listener.headersMs <= listener.requestMs, 'headers are a part of the request')
  // Exports, deliveries and responses end in parallel; database and store need some time after that.
  for (const each of [drainMs, exports.stopMs, deliveries.stopMs])
    assert(each < stopMs, 'a process that stops has time left for its connections')
  assert(drainMs + telemetry.flushMs < stopMs, 'what a stopping process has measured is sent')
  assert(store.retryMs <= store.retryMsMax, 'pauses double from the one to the other')
  // Otherwise a silent server would be reported as slow, and uploads would fail for it.
  assert(store.idleMs < store.requestMs, 'a silent request is distinguished from a slow one')
  assert(deliveries.slowMs < deliveries.timeoutMs, 'a slow answer is one that still comes')
}
