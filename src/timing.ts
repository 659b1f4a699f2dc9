/**
 * How long the service waits for others, and how often it looks. Given to what it bounds, so that a test waits for one
 * second where the service waits for thirty; what bounds bytes and counts is the same everywhere (`limits`, config.ts).
 */
import { strict as assert } from 'node:assert'

/** Of connections that callers open. */
export interface ListenerTiming {
  /** For the headers of a request. Who sends them slowly holds a socket and nothing else; long for any network. */
  headersMs: number
  /** For a request with its body. */
  requestMs: number
  /** How often both are looked at. */
  checkMs: number
  /**
   * An export's connection from which the client reads nothing for so long is closed; after twice that at the latest, as
   * Node only sees at the second time-out that nothing has moved since the first.
   */
  idleMs: number
}

/** Of requests to S3. */
export interface StoreTiming {
  /**
   * Tries of one request before the whole upload fails. The pauses between them double from the one figure to the other:
   * an outage of half a minute costs no export its work.
   */
  tries: number
  retryMs: number
  retryMsMax: number
  /** A request on whose connection no byte moves for so long has failed. */
  idleMs: number
  /** How long an aborted upload waits for its parts on the way before it cuts them off. */
  landingMs: number
  /** Any request, however slowly it moves. 8 MiB within it is 140 kB/s. */
  requestMs: number
}

/** Of full exports as jobs. */
export interface ExportTiming {
  /** How often a full export says how far it is; whoever cancels it, or takes it over, is heeded as fast. */
  renewMs: number
  /**
   * How often each process looks for full exports whose process died, which is known after fifteen seconds of
   * silence. With the pause before the next attempt they are taken up within half a minute.
   */
  superviseSeconds: number
  /**
   * The queue is looked at so often: new entries announce themselves, those that come back are only seen by looking. A
   * full export for which the threads had no place is left alone as long.
   */
  pollSeconds: number
  /** How long a full export that is stopped may take back what it wrote, before the process ends regardless. */
  stopMs: number
}

/** Of requests to subscribers. */
export interface DeliveryTiming {
  /** From the connection to the end of the answer (contract, section 7). */
  timeoutMs: number
  /** A receiver that took longer to answer than this, or fails, counts as slow. */
  slowMs: number
  /** Between two searches for the same third party, where it has more: they take a tenth of a processor then. */
  searchPauseMs: number
  /** How often each process looks for what nobody told it of: a notification that was lost, another one's death. */
  pollMs: number
  /** A database that went away is asked again so often, by whoever has an answer to write down. */
  retryMs: number
  /** How long requests on their way to subscribers may still be answered when the process stops. */
  stopMs: number
}

export interface Timing {
  listener: ListenerTiming
  /** A server that could not be reached when the process started is asked again so often. */
  databaseAwayMs: number
  /** What a request found missing keeps the process from being ready for so long, and until it is there again. */
  missingMs: number
  /** How long SIGTERM waits for running answers. */
  drainMs: number
  /**
   * How long a process that was told to stop may take for all of it: `drainMs`, and some seconds for the rest. It is less
   * than docker-compose.yml leaves it. What has fallen silent, a database say, is not waited for any longer.
   */
  stopMs: number
  store: StoreTiming
  exports: ExportTiming
  deliveries: DeliveryTiming
}

export const defaultTiming: Timing = {
  listener: { headersMs: 10_000, requestMs: 30_000, checkMs: 5_000, idleMs: 120_000 },
  databaseAwayMs: 1_000,
  missingMs: 5_000,
  drainMs: 25_000,
  stopMs: 35_000,
  store: {
    tries: 9,
    retryMs: 250,
    retryMsMax: 8_000,
    idleMs: 20_000,
    landingMs: 5_000,
    requestMs: 60_000,
  },
  exports: { renewMs: 500, superviseSeconds: 5, pollSeconds: 2, stopMs: 5_000 },
  deliveries: {
    timeoutMs: 10_000,
    slowMs: 1_000,
    searchPauseMs: 50,
    pollMs: 2_000,
    retryMs: 250,
    stopMs: 5_000,
  },
}

/** @throws {AssertionError} where two of them contradict each other */
export function checkTiming({ listener, drainMs, stopMs, store, exports, deliveries }: Timing): void {
  // Or a request with a body would be cut off before its headers are late.
  assert(listener.headersMs <= listener.requestMs, 'headers are a part of the request')
  // Exports, deliveries and answers end side by side; the database and the store are left some time after that.
  for (const each of [drainMs, exports.stopMs, deliveries.stopMs])
    assert(each < stopMs, 'a process that stops has time left for its connections')
  assert(store.retryMs <= store.retryMsMax, 'pauses double from the one to the other')
  // Otherwise the silence of a server would be reported as slowness, and uploads be given up for it.
  assert(store.idleMs < store.requestMs, 'a silent request is told from a slow one')
  // A process would lose its export while it says nothing: another one takes it after fifteen seconds.
  assert(exports.renewMs < 15_000 / 2, 'a full export is renewed twice before it counts as lost')
  assert(deliveries.slowMs < deliveries.timeoutMs, 'a slow answer is one that still comes')
}
