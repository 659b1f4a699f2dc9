/**
 * Runs the named programs of `npm run bench`, `npm run docs` and `npm run long`. Without a name, it lists them. `npm
 * run bench -- small --rounds 3` runs the program `small` with the arguments after its name.
 */
import { spawnSync } from 'node:child_process'

export interface Program {
  /** What the program does or proves. */
  about: string
  /** Path of the program from the root, and its first arguments. */
  node: string[]
  /** Variables for the program, unless the environment sets them. */
  env?: Record<string, string>
  /** After this time the program is interrupted, and counts as failed. */
  minutes?: number
}

/** @returns the exit code */
export function runProgram({ node, env, minutes }: Program, words: string[]): number {
  const { status, error } = spawnSync(process.execPath, [...node, ...words], {
    stdio: 'inherit',
    env: { ...env, ...process.env },
    ...(minutes ? { timeout: minutes * 60_000, killSignal: 'SIGINT' } : {}),
  })
  if (error) console.error(error.message)
  return status ?? 1
}

/**
 * Runs the program that the command line names; its exit code becomes that of this process.
 * @param script `bench` for `npm run bench`
 */
export function runNamed(
  script: string,
  programs: Record<string, Program>,
  run = (name: string, words: string[]) => runProgram(programs[name]!, words),
): void {
  const [name = '', ...words] = process.argv.slice(2)
  if (programs[name]) {
    process.exitCode = run(name, words)
    return
  }
  for (const [each, { about, env = {}, minutes }] of Object.entries(programs)) {
    const variables = Object.entries(env).map(([variable, value]) => `${variable}=${value}`)
    const bound = minutes ? [`at most ${minutes} minutes`] : []
    const details = [...bound, ...variables].join(', ')
    console.log([`npm run ${script} -- ${each}`, about, ...(details ? [details] : [])].join('\n  '))
  }
  if (name === '') return
  console.error(`npm run ${script} has no ${name}`)
  process.exitCode = 1
}
