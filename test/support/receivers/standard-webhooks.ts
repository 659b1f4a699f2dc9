/** The libraries of Standard Webhooks, unmodified, as receivers use them. */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { resolve } from 'node:path'
import { Webhook } from 'standardwebhooks'

/** Returns what the library returns for a request: the parsed body, or undefined if it refuses the request. */
export type Verifier = (secret: string, body: Buffer, headers: IncomingHttpHeaders) => Promise<unknown>

const packages = resolve(import.meta.dirname, '../../../.cache/python')

export const isPythonInstalled = ((): boolean => {
  try {
    execFileSync('python3', ['--version'], { stdio: 'ignore' })
    return existsSync(resolve(packages, 'standardwebhooks'))
  } catch {
    return false
  }
})()

/** Warns once per run. */
export function warnIfPythonIsMissing(): void {
  if (!isPythonInstalled)
    console.warn('No tests with the Python library of Standard Webhooks: not in .cache/python, see .ci/run')
}

const program = `
import base64, json, sys
from standardwebhooks import Webhook, WebhookVerificationError
given = json.load(sys.stdin)
try:
    print(json.dumps(Webhook(given["secret"]).verify(base64.b64decode(given["body"]), given["headers"])))
except WebhookVerificationError:
    print("refused")
`

export const verifiers: Record<string, Verifier> = {
  JavaScript: async (secret, body, headers) => {
    const webhook = new Webhook(secret)
    try {
      return webhook.verify(body, headers as Record<string, string>)
    } catch (error) {
      if ((error as Error).name === 'WebhookVerificationError') return undefined
      throw error
    }
  },
  ...(isPythonInstalled ? { Python: verifyInPython } : {}),
}

async function verifyInPython(secret: string, body: Buffer, headers: IncomingHttpHeaders): Promise<unknown> {
  const { promise, resolve: done, reject } = Promise.withResolvers<string>()
  const env = { PATH: process.env['PATH'], PYTHONPATH: packages }
  const child = execFile('python3', ['-c', program], { env }, (error, out) =>
    error ? reject(error) : done(out),
  )
  child.stdin!.end(JSON.stringify({ secret, headers, body: body.toString('base64') }))
  const out = await promise
  return out === 'refused\n' ? undefined : JSON.parse(out)
}
