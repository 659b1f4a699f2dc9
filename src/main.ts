/** `npm start`: runs the service with its default timing. */
import { runUntilSignal } from './start/run-until-signal.ts'
import { defaultTiming } from './timing.ts'

runUntilSignal(defaultTiming)
