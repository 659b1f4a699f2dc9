/** What guides and examples use that neither Node nor npm brings. `.ci/run` installs it where it can. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { isPythonInstalled } from '../receivers/standard-webhooks.ts'

/** The folder for PYTHONPATH in which .ci/run has installed what an example needs. */
export const packagesOf = (example: string): string =>
  resolve(import.meta.dirname, '../../../.cache/examples', example)

function isThere(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined
}

const programs = ['bash', 'curl', 'jq', 'zstd', 'sha256sum'] as const
const missingPrograms: string[] = programs.filter((name) => !isThere(name))

/** Commands of the shell that a text uses and this machine lacks. */
export function missingFor(text: string): string[] {
  return missingPrograms.filter((name) => name === 'bash' || new RegExp(`\\b${name} `).test(text))
}

const isWithPython = isThere('python3')
const hasPackages = (example: string) => isWithPython && existsSync(resolve(packagesOf(example), 'installed'))

export const isInstalled = {
  standardwebhooks: isPythonInstalled,
  python: hasPackages('python'),
  package: hasPackages('package'),
  airbyte: hasPackages('airbyte'),
  /** With its standard library alone. */
  python3: isWithPython,
  go: isThere('go'),
}

/** Warns once per run. @param project of the tests */
export function warnOfMissingTools(project: string): void {
  if (missingPrograms.length > 0)
    console.warn(`Guides are left out that use ${missingPrograms.join(', ')}: not installed, see .ci/run`)
  if (project !== 'pipeline' && !isInstalled.go) console.warn('No test of examples/go: Go is not installed')
  const used = project === 'pipeline' ? (['package', 'airbyte'] as const) : (['python', 'package'] as const)
  const examples = used.filter((name) => !isInstalled[name])
  if (examples.length > 0)
    console.warn(`No tests in Python that need ${examples.join(', ')}: not in .cache/examples, see .ci/run`)
}
