import { limits } from './config.ts'

/**
 * Aborts at the first of these signals, with its name as the reason. A later one ends the process at once, with exit
 * code 1.
 *
 * Under npm one Ctrl-C comes twice: the terminal sends it to npm and to what npm runs, and npm passes its own on. Taken
 * for a second one, it would cut off running answers and leave the embedded database running.
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
