/** A Python with the package of this checkout, which runs what tests send it. */
import { resolve } from 'node:path'
import type { Credentials } from '../../src/http/reference/demo-credentials.ts'
import { startProgram } from '../support/guides/run-program.ts'
import { packagesOf } from '../support/guides/tools.ts'
import { until } from '../support/until.ts'

export const pythonPackage = resolve(import.meta.dirname, '../../python')

export interface PythonError {
  code: string
  message: string
  remedy: string
  status: number
  requestId: string | null
  issues: { parameter: string; message: string }[]
}

export interface PythonSession {
  /** Runs lines that may set `result`, and raise an error of the package. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the lines make
  run(code: string): Promise<{ result: any; error?: PythonError }>
  close(): Promise<void>
}

export function startSession(
  access: Pick<Credentials, 'baseUrl' | 'companyToken' | 'thirdPartySecret'>,
): PythonSession {
  const path = [resolve(pythonPackage, 'src'), packagesOf('package')].join(':')
  const program = startProgram(['python3', resolve(pythonPackage, 'tests/session.py')], access, {
    env: { PYTHONPATH: path, PYTHONDONTWRITEBYTECODE: '1' },
  })
  const { child, output, ended } = program
  return {
    async run(code) {
      output.out = ''
      child.stdin!.write(`${JSON.stringify(code)}\n`)
      await until(() => output.out.endsWith('\n') || child.exitCode !== null)
      if (!output.out.endsWith('\n')) throw new Error(output.error)
      const answer = JSON.parse(output.out)
      if (answer.crash) throw new Error(answer.crash)
      return answer
    },
    async close() {
      child.stdin!.end()
      await ended
    },
  }
}
