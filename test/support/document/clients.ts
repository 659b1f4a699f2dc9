/** Generators of clients and linters, in `.cache/clients`. `.ci/run` installs them where it can. */
import { spawnSync } from 'node:child_process'
import { delimiter, join, resolve } from 'node:path'

const installed = resolve(import.meta.dirname, '../../../.cache/clients')

/** With the tools on the path. */
export const clientTools: NodeJS.ProcessEnv = {
  ...process.env,
  PATH: ['bin', 'python/bin', 'npm/node_modules/.bin']
    .map((folder) => join(installed, folder))
    .concat(process.env['PATH']!)
    .join(delimiter),
  PYTHONPATH: join(installed, 'python'),
  // None tells its makers what it is used for.
  REDOCLY_TELEMETRY: 'off',
  SCARF_ANALYTICS: 'false',
}

const isThere = (program: string) =>
  spawnSync(program, ['-version'], { stdio: 'ignore', env: clientTools }).error === undefined

/** Programs among these that this machine lacks. A line says so. */
export function missingTools(...programs: string[]): string[] {
  const missing = programs.filter((name) => !isThere(name))
  if (missing.length > 0)
    console.warn(`No test that uses ${missing.join(', ')}: not in .cache/clients, see .ci/run`)
  return missing
}
