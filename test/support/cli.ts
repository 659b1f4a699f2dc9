import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { Writable } from 'node:stream'
import { runCli } from '../../src/commands/run-cli.ts'
import { testMasterKey } from './service.ts'

export interface Ran {
  code: number
  out: string
  error: string
}

/** One command line of staff, in this process. */
export async function cli(ownerUrl: string, ...words: string[]): Promise<Ran> {
  const ran = { code: 0, out: '', error: '' }
  ran.code = await runCli(words, {
    env: environmentOf(ownerUrl),
    out: collect((text) => (ran.out += text)),
    err: collect((text) => (ran.error += text)),
    // No signal comes.
    stop: () => new AbortController().signal,
  })
  return ran
}

function collect(add: (text: string) => void): Writable {
  return new Writable({
    write(chunk, _encoding, done) {
      add(String(chunk))
      done()
    },
  })
}

function environmentOf(ownerUrl: string) {
  return { DATA_DIR: tmpdir(), DATABASE_URL: ownerUrl, MASTER_KEY: testMasterKey.toString('hex') }
}

/** A command line as its own process, to be looked at and interrupted while it runs. */
export function startCli(
  ownerUrl: string,
  ...words: string[]
): { child: ChildProcess; soFar: Ran; ended: Promise<Ran> } {
  const env = {
    PATH: process.env['PATH'],
    ...environmentOf(ownerUrl),
    // As the npm scripts do: half of a short command's time goes into stripping types.
    NODE_COMPILE_CACHE: '.cache/compile',
  }
  const child = spawn(process.execPath, ['src/cli.ts', ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const soFar = { code: 0, out: '', error: '' }
  child.stdout.on('data', (chunk) => {
    soFar.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    soFar.error += chunk
  })
  const ended = once(child, 'close').then(([code]) => ({ ...soFar, code }))
  return { child, soFar, ended }
}
