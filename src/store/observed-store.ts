/** A store that reports the time and outcome of its requests to telemetry. */
import { limits } from '../config.ts'
import type { StoreRequest } from '../telemetry/telemetry.ts'
import type { ObjectStore, ObjectWriter } from './store.ts'

type Report = (request: StoreRequest) => void

export function observedStore(store: ObjectStore, report: Report): ObjectStore {
  const timed = timedBy(report)
  return {
    create: async (key, contentType) =>
      observedWriter(await timed('create', () => store.create(key, contentType)), report),
    remove: (key) => timed('remove', () => store.remove(key)),
    clear: (folder, isLeft) => timed('list', () => store.clear(folder, isLeft)),
    sweep: (before) => timed('list', () => store.sweep(before)),
    check: () => timed('check', () => store.check()),
    // Not timed: pages are read while they are used, so the time would include that of the user.
    listObjects: (before) => store.listObjects(before),
    // Not timed: it needs no request.
    signedUrl: (...link) => store.signedUrl(...link),
  }
}

function observedWriter(writer: ObjectWriter, report: Report): ObjectWriter {
  const timed = timedBy(report)
  // Small writes only fill a buffer. So writes are reported together, once they have the size of a part of an upload.
  let [bytes, seconds] = [0, 0]
  const written = (outcome: StoreRequest['outcome']) => {
    report({ operation: 'write', outcome, seconds })
    bytes = 0
    seconds = 0
  }
  return {
    write: async (chunk) => {
      const began = performance.now()
      try {
        await writer.write(chunk)
      } catch (error) {
        seconds += (performance.now() - began) / 1_000
        written('failed')
        throw error
      }
      seconds += (performance.now() - began) / 1_000
      bytes += chunk.length
      if (bytes >= limits.storePartBytes) written('done')
    },
    complete: (expected) => {
      if (bytes > 0) written('done')
      return timed('complete', () => writer.complete(expected))
    },
    abort: () => writer.abort(),
  }
}

function timedBy(report: Report) {
  return async <Result>(
    operation: StoreRequest['operation'],
    run: () => Promise<Result>,
  ): Promise<Result> => {
    const began = performance.now()
    let outcome: StoreRequest['outcome'] = 'failed'
    try {
      const result = await run()
      outcome = 'done'
      return result
    } finally {
      report({ operation, outcome, seconds: (performance.now() - began) / 1_000 })
    }
  }
}
