/** A Python with the package of this checkout, which runs what tests send it. */
import { resolve } from 'node:path'
import {
  type Fault,
  type FaultyProxy,
  startFaultyProxy,
} from '../../packages/partner/test/support/client/faulty-proxy.ts'
import type { Credentials } from '../../src/http/reference/demo-credentials.ts'
import { firmAccess, startProgram } from '../support/guides/run-program.ts'
import { packagesOf } from '../support/guides/tools.ts'
import { type ExportStage, setExportStage } from '../support/stages/export-stage.ts'
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

/** What goes wrong with the nth request. */
export type FaultOf = (nth: number) => Fault | undefined | Promise<Fault | undefined>

/** A service without limits, a Python that reaches it through a proxy, and what goes wrong on the way. */
export interface PythonStage {
  stage: ExportStage
  proxy: FaultyProxy
  session: PythonSession
  /** Of requests whose path below `/api/v1` begins so. */
  spoil(path: string, fault: FaultOf): void
  asked(path: string): FaultyProxy['asked']
  close(): Promise<void>
}

export async function setPythonStage(): Promise<PythonStage> {
  const rateLimit = { requests: 1_000_000, windowMs: 10_000, concurrent: 200 }
  const stage = await setExportStage({ rateLimit })
  const proxy = await startFaultyProxy(stage.service.url)
  const session = startSession({ ...firmAccess(stage), baseUrl: proxy.url })
  return {
    stage,
    proxy,
    session,
    spoil(path, fault) {
      let nth = 0
      proxy.fault = (asked) => {
        if (!asked.startsWith(`/api/v1/${path}`)) return undefined
        nth += 1
        return fault(nth)
      }
    },
    asked: (path) => proxy.asked.filter((each) => each.path.startsWith(`/api/v1/${path}`)),
    async close() {
      await session.close()
      await proxy.close()
      await stage.close()
    },
  }
}

/** The answer with another text. */
export const rewritten = (text: (whole: string) => string): Fault => ({
  kind: 'rewrite',
  body: (whole) => Buffer.from(text(String(whole))),
})
