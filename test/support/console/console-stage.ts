/** A service with its console, signed in with the key of alice. */

import { createConsoleKey } from '../../../src/auth/console-keys.sql.ts'
import type { Config } from '../../../src/config.ts'
import { type ExportStage, setExportStage } from '../stages/export-stage.ts'

export interface ConsoleStage extends ExportStage {
  /** `http://127.0.0.1:4711`, without a path. */
  origin: string
  key: string
  /** Asks as a browser on the same page would. @param path below the origin */
  ask(path: string, options?: RequestInit): Promise<Response>
  /** The cookie of a new session. */
  signIn(key?: string): Promise<string>
  /** Sends a form as its page would, with the token of the session. */
  post(cookie: string, path: string, fields?: Record<string, string>): Promise<Response>
}

export async function setConsoleStage(settings: Partial<Config> = {}): Promise<ConsoleStage> {
  const stage = await setExportStage({ console: { host: '127.0.0.1', port: 0 }, ...settings })
  const { origin } = new URL(stage.service.consoleUrl!)
  const key = (await createConsoleKey(stage.staff.client, 'alice'))!
  const ask = (path: string, { headers, ...options }: RequestInit = {}) =>
    fetch(`${origin}${path}`, {
      redirect: 'manual',
      ...options,
      headers: { 'Sec-Fetch-Site': 'same-origin', ...(headers as Record<string, string>) },
    })
  const signIn = async (given = key) => {
    const body = new URLSearchParams({ key: given })
    const answer = await ask('/console/sign-in', { method: 'POST', body })
    return answer.headers.get('set-cookie')!.split(';')[0]!
  }
  const post = async (cookie: string, path: string, fields: Record<string, string> = {}) => {
    const body = new URLSearchParams({ csrf: await csrfOfPage(ask, cookie), ...fields })
    return ask(path, { method: 'POST', body, headers: { Cookie: cookie } })
  }
  return { ...stage, origin, key, ask, signIn, post }
}

/** The token that the forms of a session carry; the one for signing out is on every page. */
async function csrfOfPage(ask: ConsoleStage['ask'], cookie: string): Promise<string> {
  const page = await (await ask('/console', { headers: { Cookie: cookie } })).text()
  return /name="csrf" value="([^"]+)"/.exec(page)![1]!
}
