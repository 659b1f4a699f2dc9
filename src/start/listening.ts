/** The port of the service. A process binds it before anything else, and gives it up last when it stops. */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../config.ts'
import { type createApp, createOpeningApp } from '../http/app.ts'
import { answerOn, createListener } from '../http/listener.ts'
import { RunningStreams } from '../http/stream/running-streams.ts'
import { listen, urlOf } from '../listen.ts'
import type { Log } from '../log.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Timing } from '../timing.ts'
import type { openingSteps } from './open-database.ts'

type App = ReturnType<typeof createApp>

/** Binds the port. Until `answerWith` is called, probes learn the step of the start, and all other requests get 503. */
export async function listenFirst(
  stack: AsyncDisposableStack,
  config: Config,
  parts: { log: Log; telemetry: Telemetry; timing: Timing; steps: ReturnType<typeof openingSteps> },
) {
  const { timing, steps, log } = parts
  const streams = new RunningStreams()
  let app: Pick<App, 'fetch'> = createOpeningApp(parts, () => steps.doing() ?? 'starting')
  const fetch = (...request: Parameters<App['fetch']>) => app.fetch(...request)
  const server = createListener(fetch, parts, timing.listener)
  const port = await listen(server, config, { port: 'PORT', host: 'HOST' })
  const connections = new Set<Socket>()
  server.on('connection', (socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  let drained = true
  const reportCut = (answers: ServerResponse[]) => {
    drained = false
    const paths = [...new Set(answers.map(({ req }) => req.url!.split('?', 1)[0]!.slice(0, 256)))]
    const begun = streams.list().filter(({ bytes }) => bytes > 0)
    const bytes = begun.reduce((sum, stream) => sum + stream.bytes, 0)
    log('service.cut', { answers: answers.length, paths, streams: begun.length, bytes })
  }
  let drainMs = 0
  let stopped: Promise<void> | undefined
  const stop = () => {
    const running = () => [...connections].flatMap((socket) => answerOn(socket) ?? [])
    stopped ??= leave(server, running, { drainMs, stopMs: config.stopSeconds * 1000 }, reportCut)
    return stopped
  }
  stack.defer(stop)
  return {
    url: urlOf(config.host, port),
    answerWith: (ready: App) => {
      app = ready
    },
    /** The streams of ledgers that are being sent. */
    streams,
    /** Sets how long `stop` still answers requests. */
    drainFor: (ms: number) => {
      drainMs = ms
    },
    stop,
    /** Whether all responses ended by themselves, without being cut off. */
    drained: () => drained,
  }
}

/**
 * Stops the server. It accepts requests for `drainMs` more. Requests that still run then have another `stopMs`, after
 * which they are cut off.
 */
async function leave(
  server: Server,
  running: () => ServerResponse[],
  { drainMs, stopMs }: { drainMs: number; stopMs: number },
  reportCut: (answers: ServerResponse[]) => void,
): Promise<void> {
  // Otherwise a client that reuses its connection would be served until the deadline and then cut off.
  for (const answer of running()) answer.shouldKeepAlive = false
  server.prependListener('request', (_, outgoing) => {
    outgoing.shouldKeepAlive = false
  })
  if (drainMs > 0) await delay(drainMs)
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  server.close(() => resolve())
  // A kept-alive connection becomes idle only when its response ends, and would then keep the server open.
  const sweep = setInterval(() => server.closeIdleConnections(), 50)
  const deadline = setTimeout(() => {
    const answers = running()
    if (answers.length > 0) reportCut(answers)
    server.closeAllConnections()
  }, stopMs)
  await closed
  clearInterval(sweep)
  clearTimeout(deadline)
}
