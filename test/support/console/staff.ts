/** Staff in a browser without a script: reads pages of the console, fills in their forms and sends them. */
import type { ConsoleStage } from './console-stage.ts'

export interface Shown {
  status: number
  headers: Headers
  /** HTML. */
  text: string
}

export interface Staff {
  cookie: string
  /** Its session ends with the database. */
  close(): void
  /** @param path below /console */
  open(path: string): Promise<Shown>
  /** The hidden fields of the form that posts to a path. @throws {Error} if the page has no such form */
  formOf(page: string, action: string): Promise<Record<string, string>>
  /** Opens a page, fills in its form for that path, sends it, and follows to the page after it. */
  submit(page: string, action: string, fields?: Record<string, string>): Promise<Shown>
  /** Sends these fields as they are. */
  send(action: string, fields: Record<string, string>): Promise<Shown>
}

export async function signInStaff(stage: ConsoleStage): Promise<Staff> {
  const cookie = await stage.signIn()
  const ask = async (path: string, options: RequestInit = {}): Promise<Shown> => {
    const answer = await stage.ask(`/console${path}`, { ...options, headers: { Cookie: cookie } })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  const formOf = async (page: string, action: string) => {
    const { text } = await ask(page)
    const form = text
      .split('<form ')
      .find((each) => each.startsWith(`method="post" action="/console${action}"`))
    if (form === undefined) throw new Error(`${page} has no form for ${action}: ${text}`)
    const hidden = form.split('</form>')[0]!.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)
    return Object.fromEntries([...hidden].map(([, name, value]) => [name!, value!]))
  }
  const send = (action: string, fields: Record<string, string>) =>
    ask(action, { method: 'POST', body: new URLSearchParams(fields) })
  return {
    cookie,
    close: () => {},
    open: (path) => ask(path),
    formOf,
    send,
    submit: async (page, action, fields = {}) => {
      const sent = await send(action, { ...(await formOf(page, action)), ...fields })
      const next = sent.headers.get('location')
      return sent.status === 303 && next ? ask(next.replace('/console', '')) : sent
    },
  }
}
