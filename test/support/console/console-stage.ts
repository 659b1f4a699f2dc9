/** A service with its console, signed in with the key of alice. */

import { createConsoleKey } from '../../../src/auth/console-keys.sql.ts'
import type { Config } from '../../../src/config.ts'
import { setExportStage } from '../stages/export-stage.ts'

export type ConsoleStage = Awaited<ReturnType<typeof setConsoleStage>>

export async function setConsoleStage(settings: Partial<Config> = {}) {
  const stage = await setExportStage({ console: { host: '127.0.0.1', port: 0 }, ...settings })
  /** `http://127.0.0.1:4711`, without a path. */
  const { origin } = new URL(stage.service.consoleUrl!)
  const key = (await createConsoleKey(stage.staff.client, 'alice'))!
  /** Asks as a browser on the same page would. @param path below the origin */
  const ask = (path: string, { headers, ...options }: RequestInit = {}) =>
    fetch(`${origin}${path}`, {
      redirect: 'manual',
      ...options,
      headers: { 'Sec-Fetch-Site': 'same-origin', ...(headers as Record<string, string>) },
    })
  /** Returns the cookie of a new session. */
  const signIn = async (given = key) => {
    const body = new URLSearchParams({ key: given })
    const answer = await ask('/console/sign-in', { method: 'POST', body })
    return answer.headers.get('set-cookie')!.split(';')[0]!
  }
  /** The token that the forms of a session carry; the form for signing out is on every page. */
  const csrfOf = async (cookie: string) => {
    const page = await (await ask('/console', { headers: { Cookie: cookie } })).text()
    return /name="csrf" value="([^"]+)"/.exec(page)![1]!
  }
  const signOut = async (cookie: string) => {
    const body = new URLSearchParams({ csrf: await csrfOf(cookie) })
    return ask('/console/sign-out', { method: 'POST', body, headers: { Cookie: cookie } })
  }
  return { ...stage, origin, key, ask, signIn, csrfOf, signOut }
}

export interface Shown {
  status: number
  headers: Headers
  /** HTML. */
  text: string
}

/** Staff in a browser without a script: reads pages of the console, fills in their forms and sends them. */
export async function signInStaff(stage: ConsoleStage) {
  const cookie = await stage.signIn()
  const ask = async (path: string, options: RequestInit = {}): Promise<Shown> => {
    const answer = await stage.ask(`/console${path}`, { ...options, headers: { Cookie: cookie } })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  /** @param path below /console */
  const open = (path: string) => ask(path)
  /** The hidden fields of the form that posts to a path. @throws {Error} if the page has no such form */
  const formOf = async (page: string, action: string): Promise<Record<string, string>> => {
    const { text } = await ask(page)
    const form = text
      .split('<form ')
      .find((each) => each.startsWith(`method="post" action="/console${action}"`))
    if (form === undefined) throw new Error(`${page} has no form for ${action}: ${text}`)
    const hidden = form.split('</form>')[0]!.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)
    return Object.fromEntries([...hidden].map(([, name, value]) => [name!, value!]))
  }
  /** Sends these fields as they are. */
  const send = (action: string, fields: Record<string, string>) =>
    ask(action, { method: 'POST', body: new URLSearchParams(fields) })
  return {
    cookie,
    open,
    formOf,
    send,
    /** Opens a page, fills in its form for that path, sends it, and follows to the page after it. */
    submit: async (page: string, action: string, fields: Record<string, string> = {}) => {
      const sent = await send(action, { ...(await formOf(page, action)), ...fields })
      const next = sent.headers.get('location')
      return sent.status === 303 && next ? ask(next.replace('/console', '')) : sent
    },
    /** Opens the page that the link "Next page" of a list leads to. */
    next: ({ text }: Shown) =>
      open(/href="\/console([^"]+)" rel="next"/.exec(text)![1]!.replaceAll('&amp;', '&')),
    /** The session ends with the database. */
    close: () => {},
  }
}
