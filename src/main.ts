/** `npm start`: the service as it is run. */
import { runUntilSignal } from './start/run-until-signal.ts'
import { defaultTiming } from './timing.ts'

runUntilSignal(defaultTiming)
