/**
 * What the package is tested with, besides the Node of the checkout: the runtimes that partners may use, and the
 * tools in `.cache/runtimes`, as ../../package/runtimes/package.json names them.
 */
import { existsSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { apiExtractor } from '../../../package/api-report.ts'
import { checkout } from './copy.ts'

const installed = join(checkout, '.cache/runtimes/node_modules')

export interface Runtime {
  name: string
  program: string
  /** Words of the command line before the file to run. */
  words: string[]
  /** Options that keep `require` from loading ES modules, as before Node 20.19 and 22.12. */
  withoutRequireOfModules: string[]
  /** Words before a command of npm, which then finds this Node first. */
  withNode: string[]
  /** The words with which a partner installs the package, and those that run its command. */
  install: string[]
  command: string[]
  /** Whether it has SQLite. */
  hasSqlite: boolean
}

function node(version: number, program = join(installed, `node-${version}/bin/node`)): Runtime {
  const withNode = ['env', `PATH=${dirname(program)}${delimiter}${process.env['PATH']}`]
  return {
    name: `Node ${version}`,
    program,
    words: [],
    withoutRequireOfModules: ['--no-experimental-require-module'],
    withNode,
    install: [...withNode, 'npm', 'install', '--no-audit', '--no-fund', 'grandlivre'],
    command: [...withNode, 'npx', '--no-install', 'grandlivre'],
    hasSqlite: version >= 22,
  }
}

const deno = join(installed, 'deno/deno')
const bun = join(installed, 'bun/bin/bun')
/** Without this option Deno installs no version of the last 24 hours. */
const ofAnyAge = '--minimum-dependency-age=0'

const others: Runtime[] = [
  ...[20, 22, 24].map((version) => node(version)),
  {
    name: 'Deno',
    program: deno,
    words: ['run', '--allow-all', ofAnyAge],
    withoutRequireOfModules: [],
    withNode: [],
    install: [deno, 'add', ofAnyAge, 'npm:grandlivre'],
    command: [deno, 'run', '--allow-all', ofAnyAge, 'npm:grandlivre'],
    hasSqlite: true,
  },
  {
    name: 'Bun',
    program: bun,
    words: ['run'],
    withoutRequireOfModules: [],
    withNode: [],
    install: [bun, 'add', 'grandlivre'],
    command: [bun, 'run', '--bun', 'grandlivre'],
    hasSqlite: true,
  },
]

export const runtimes: Runtime[] = [
  ...others.filter(({ program }) => existsSync(program)),
  node(Number.parseInt(process.versions.node, 10), process.execPath),
]

/** Programs for Node. The compiler is an older one, which many partners have. */
export const tools = {
  apiExtractor,
  compiler: join(installed, 'typescript/bin/tsc'),
  publint: join(installed, 'publint/src/cli.js'),
  attw: join(installed, '@arethetypeswrong/cli/dist/index.js'),
  verdaccio: join(installed, 'verdaccio/bin/verdaccio'),
}

/** @returns the runtimes and tools that are not installed */
export function missingForPackage(): string[] {
  const absent = others.filter(({ program }) => !existsSync(program)).map(({ name }) => name)
  return [...absent, ...Object.keys(tools).filter((name) => !existsSync(tools[name as keyof typeof tools]))]
}

/** Warns once per run. */
export function warnIfRuntimesAreMissing(): void {
  const missing = missingForPackage()
  if (missing.length > 0)
    console.warn(`No tests of the package with ${missing.join(', ')}: not in .cache/runtimes, see .ci/run`)
}
