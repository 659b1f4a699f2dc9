/** Compiles programs of the bench in Rust and Go, below .cache/bench. What has not changed is not compiled again. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { say } from '../own-process.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const compiled = fileURLToPath(new URL('../../.cache/bench', import.meta.url))

/** The first time, their libraries are fetched and compiled, too. */
const compileMs = 10 * 60_000

const run = promisify(execFile)

export const rustProgram = join(compiled, 'rust', 'release', 'year-in-rust')
export const goProgram = join(compiled, 'go', 'year-in-go')

/** Needs cargo and rustc 1.88. @returns see `Peer.build` */
export function compileRust(): Promise<string | undefined> {
  // rust/.cargo/config.toml names the folder of the program.
  return compile('rust', ['cargo', 'build', '--release'])
}

/** Needs Go 1.26. @returns see `Peer.build` */
export function compileGo(): Promise<string | undefined> {
  return compile('go', ['go', 'build', '-trimpath', '-o', goProgram, '.'])
}

async function compile(folder: string, [program, ...words]: string[]): Promise<string | undefined> {
  say(`compiling the program in bench/peers/${folder} (up to some minutes the first time)`)
  try {
    // Go would otherwise fetch another toolchain.
    const env = { ...process.env, GOTOOLCHAIN: 'local' }
    await run(program!, words, { cwd: join(here, folder), env, timeout: compileMs })
    return undefined
  } catch (error) {
    return reasonOf(error as NodeJS.ErrnoException & { stderr?: string }, program!)
  }
}

/** The first line that names an error, of what the compiler says. */
function reasonOf({ code, message, stderr }: NodeJS.ErrnoException & { stderr?: string }, program: string) {
  if (code === 'ENOENT') return `${program} is not installed`
  const lines = (stderr ?? '').split('\n').filter((line) => line.trim() !== '')
  return lines.find((line) => line.startsWith('error')) ?? lines.at(-1) ?? message
}
