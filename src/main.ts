/** `npm start`: runs the service with its default timing. */
import { ensureDemoFolder } from '../packages/sample/src/demo-folder.ts'
import { runUntilSignal } from './start/run-until-signal.ts'
import { defaultTiming } from './timing.ts'

const { stdout } = process
const terminal = { write: (text: string) => stdout.write(text), folder: process.cwd() }
runUntilSignal(defaultTiming, ensureDemoFolder, stdout.isTTY ? terminal : undefined)
