/** Programs of examples, each in a process of its own, with the credentials of a folder or firm. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Credentials } from '../../../src/http/reference/demo-credentials.ts'
import { environment } from '../process.ts'
import type { ExportStage } from '../stages/export-stage.ts'

type Access = Pick<Credentials, 'baseUrl' | 'companyToken' | 'thirdPartySecret'>

/** For a program that reads firm 110: its token is the firm's, in the place of a company token. */
export const firmAccess = ({ service, firm }: ExportStage): Access => ({
  baseUrl: service.url,
  companyToken: firm['Authorization']!.slice('Bearer '.length),
  thirdPartySecret: firm['X-Third-Party-Secret']!,
})

export interface Program {
  child: ChildProcess
  /** What it has printed so far. */
  readonly output: { out: string; error: string }
  /** Resolves with its exit code. */
  ended: Promise<number | null>
}

export interface ProgramOptions {
  env?: Record<string, string> | undefined
  cwd?: string | undefined
}

/** @param words the program and its arguments */
export function startProgram(
  [program, ...words]: [string, ...string[]],
  { baseUrl, companyToken, thirdPartySecret }: Access,
  { env = {}, cwd }: ProgramOptions = {},
): Program {
  const child = spawn(program, words, {
    cwd,
    env: {
      ...environment,
      GRANDLIVRE_URL: baseUrl,
      GRANDLIVRE_TOKEN: companyToken,
      GRANDLIVRE_SECRET: thirdPartySecret,
      ...env,
    },
  })
  const output = { out: '', error: '' }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    output.error += text
  })
  return { child, output, ended: once(child, 'close').then(([code]) => code) }
}

/** Runs a program to its end. */
export async function runProgram(
  words: [string, ...string[]],
  credentials: Access,
  options?: ProgramOptions,
): Promise<{ code: number | null; out: string; error: string }> {
  const { output, ended } = startProgram(words, credentials, options)
  return { code: await ended, ...output }
}
