import { limits } from './config.ts'

/**
 * Aborts on the first of these signals, with the signal's name as the reason. A second signal ends the process at once,
 * with exit code 1.
 *
 * Under npm one Ctrl-C arrives twice: the terminal sends it to npm and to the program, and npm forwards its own. If the
 * echo counted as a second signal, it would cut off running responses and leave the embedded database running. Signals
 * within `limits.signalEchoMs` of the first are therefore ignored.
 */
export function stopSignal(names: NodeJS.Signals[] = ['SIGINT', 'SIGTERM']): AbortSignal {
  const controller = new AbortController()
  let first = 0
  for (const name of names)
    process.on(name, () => {
      if (!controller.signal.aborted) {
        first = performance.now()
        controller.abort(name)
      } else if (performance.now() - first > limits.signalEchoMs) process.exit(1)
    })
  return controller.signal
}
