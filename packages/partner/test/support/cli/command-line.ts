/** Runs the partner's command line, in this process or in another. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { environment } from '../../../../../test/support/process.ts'
import { createTerminal, type Terminal } from '../../../../terminal/src/terminal.ts'
import { run } from '../../../src/cli/run.ts'

export interface CommandResult {
  code: number
  /** Standard output. */
  out: string
  /** Standard error. */
  error: string
}

export interface Typed {
  /** The text that is piped into the command. */
  input?: string
  signal?: AbortSignal
}

/** Runs a command in this process. @param env all of its environment */
export async function grandlivre(
  env: Record<string, string>,
  words: string[],
  { input = '', signal = new AbortController().signal }: Typed = {},
): Promise<CommandResult> {
  const result = { code: 0, out: '', error: '' }
  const terminal = testTerminal(result, input)
  result.code = await run(words, { env, terminal, signal })
  return result
}

/** What --json printed. */
export const jsonLines = (printed: string) =>
  printed
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

/** A terminal whose input and outputs are pipes. @param written collects what it prints */
export function testTerminal(written: { out: string; error: string }, input = ''): Terminal {
  return createTerminal({
    input: Readable.from(input === '' ? [] : [input]),
    out: {
      write(content, done) {
        written.out += typeof content === 'string' ? content : new TextDecoder().decode(content)
        done?.()
      },
    },
    err: { write: (text) => (written.error += text) },
    interrupt: () => {},
  })
}

export type RunningCommand = ReturnType<typeof startGrandlivre>

/** Runs a command in its own process, so that it can be interrupted or killed. @param limit shell command before it */
export function startGrandlivre(env: Record<string, string>, words: string[], limit?: string) {
  const [safe, password] = withoutPassword(words)
  const program = [process.execPath, resolve(import.meta.dirname, '../../../src/grandlivre.ts'), ...safe]
  const [file, ...args] =
    limit === undefined ? program : ['bash', '-c', `${limit}; exec "$0" "$@"`, ...program]
  const child = spawn(file!, args, {
    env: { ...environment, ...password, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const soFar = { code: 0, out: '', error: '' }
  child.stdout!.on('data', (chunk) => {
    soFar.out += chunk
  })
  child.stderr!.on('data', (chunk) => {
    soFar.error += chunk
  })
  const ended = once(child, 'close').then(([code]) => ({ ...soFar, code: code as number | null }))
  /** `soFar`: what it has printed so far. `ended`: its result, whose code is null after a kill. */
  return { child, soFar, ended }
}

/** Moves passwords of databases from the words to the environment: the command refuses them in an address. */
function withoutPassword(words: string[]): [string[], Record<string, string>] {
  const env: Record<string, string> = {}
  const safe = words.map((word) => {
    if (!/^postgres:/.test(word)) return word
    const url = new URL(word)
    env['PGPASSWORD'] = decodeURIComponent(url.password)
    url.password = ''
    return url.href
  })
  return [safe, env]
}

/** Makes the environment of a caller from its headers. */
export function accessOf(url: string, headers: Record<string, string>): Record<string, string> {
  return {
    GRANDLIVRE_URL: url,
    GRANDLIVRE_TOKEN: headers['Authorization']!.replace('Bearer ', ''),
    GRANDLIVRE_SECRET: headers['X-Third-Party-Secret']!,
    ...(headers['society-id'] === undefined ? {} : { GRANDLIVRE_SOCIETY: headers['society-id'] }),
  }
}

/** Logs in as a script does: token and secret are piped. */
export function logIn(
  env: Record<string, string>,
  access: Record<string, string>,
  ...more: string[]
): Promise<CommandResult> {
  const input = `${access['GRANDLIVRE_TOKEN']}\n${access['GRANDLIVRE_SECRET']}\n`
  return grandlivre(env, ['login', '--url', access['GRANDLIVRE_URL']!, ...more], { input })
}

/** Writes a file for `login --from` as the demo does. */
export function writeCredentials(
  path: string,
  {
    GRANDLIVRE_URL: baseUrl,
    GRANDLIVRE_TOKEN: companyToken,
    GRANDLIVRE_SECRET: thirdPartySecret,
  }: Record<string, string>,
  { GRANDLIVRE_TOKEN: firmToken }: Record<string, string> = {},
): void {
  writeFileSync(path, JSON.stringify({ baseUrl, companyToken, firmToken, thirdPartySecret }))
}
