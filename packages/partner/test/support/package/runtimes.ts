/** The runtimes on which partners may run the package: the Node of the checkout, and those in `.cache/runtimes`. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { checkout } from './copy.ts'

const installed = join(checkout, '.cache/runtimes/node_modules')

export interface Runtime {
  name: string
  program: string
  /** Before the file to run. */
  words: string[]
}

/** As ../../package/runtimes/package.json names them. */
const others: Runtime[] = [
  { name: 'Node 20', program: join(installed, 'node-20/bin/node'), words: [] },
  { name: 'Node 22', program: join(installed, 'node-22/bin/node'), words: [] },
  { name: 'Node 24', program: join(installed, 'node-24/bin/node'), words: [] },
  { name: 'Deno', program: join(installed, 'deno/deno'), words: ['run', '--allow-all'] },
  { name: 'Bun', program: join(installed, 'bun/bin/bun'), words: ['run'] },
]

export const runtimes: Runtime[] = [
  { name: 'Node 26', program: process.execPath, words: [] },
  ...others.filter(({ program }) => existsSync(program)),
]

/** The compiler that most partners still have. */
export const olderCompiler = join(installed, 'typescript/bin/tsc')

/** Warns once per run. */
export function warnIfRuntimesAreMissing(): void {
  const missing = others.filter(({ program }) => !existsSync(program)).map(({ name }) => name)
  if (missing.length > 0)
    console.warn(`No tests of the package on ${missing.join(', ')}: not in .cache/runtimes, see .ci/run`)
}
