/**
 * The service like `src/main.ts`, with the test's timing: the first argument, as JSON. The environment of
 * production has no such setting.
 */
import { ensureDemoFolder } from '../../packages/sample/src/demo-folder.ts'
import { runUntilSignal } from '../../src/start/run-until-signal.ts'
import { defaultTiming } from '../../src/timing.ts'

runUntilSignal({ ...defaultTiming, ...JSON.parse(process.argv[2] ?? '{}') }, ensureDemoFolder)
