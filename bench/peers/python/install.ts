/** Installs Python programs of the bench, each with the packages of a requirements file, below .cache/bench. */
import { execFile } from 'node:child_process'
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { say } from '../../own-process.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const environment = fileURLToPath(new URL('../../../.cache/bench/python', import.meta.url))
const python = join(environment, 'bin', 'python')

/** Packages for analysis are large, and the network may be slow. */
const installMs = 10 * 60_000

const run = promisify(execFile)

/** The command of a program in this folder. */
export function pythonProgram(file: string, ...words: string[]): string[] {
  return [python, join(here, file), ...words]
}

/**
 * Needs Python 3.11 with venv and pip. What an earlier run has installed stays.
 * @param requirements a file in this folder
 * @returns why they cannot be here; undefined if they are
 */
export async function installPython(requirements: string): Promise<string | undefined> {
  const wanted = join(here, requirements)
  /** A copy, made last: while it is equal, everything is installed. */
  const installed = join(environment, requirements)
  const text = await readFile(wanted, 'utf8')
  if (text === (await readFile(installed, 'utf8').catch(() => undefined)) && (await starts()))
    return undefined
  say(`installing Python packages of ${requirements} (a minute, the first time)`)
  try {
    await run('python3', [
      '-c',
      'import sys; assert sys.version_info >= (3, 11), "Python is older than 3.11"',
    ])
    if (!(await starts())) await run('python3', ['-m', 'venv', '--clear', environment])
    const pip = ['-m', 'pip', 'install', '--quiet', '--no-input', '--only-binary', ':all:', '--no-deps']
    await run(python, [...pip, '--requirement', wanted], { timeout: installMs })
    await copyFile(wanted, installed)
    return undefined
  } catch (error) {
    return lastLine(error as Error & { stderr?: string })
  }
}

/** An environment refers to the Python that made it, which may be gone. */
async function starts(): Promise<boolean> {
  return run(python, ['-c', '']).then(
    () => true,
    () => false,
  )
}

/** Of what the program says on standard error. */
function lastLine({ message, stderr }: Error & { stderr?: string }): string {
  const lines = (stderr ?? '').split('\n').filter((line) => line.trim() !== '' && !line.includes('[notice]'))
  return lines.at(-1) ?? message
}
