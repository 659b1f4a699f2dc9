/** Pages that are kept up to date: when they end, and how many there may be. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createConsoleKey } from '../../src/auth/console-keys.sql.ts'
import { sha256 } from '../../src/auth/secrets.ts'
import { limits } from '../../src/config.ts'
import { type ConsoleStage, setConsoleStage } from '../support/console/console-stage.ts'
import { until } from '../support/until.ts'

let stage: ConsoleStage
/** Whether the last test has stopped the stage. */
let isStopped = false

beforeAll(async () => {
  stage = await setConsoleStage()
})
afterAll(async () => {
  if (!isStopped) await stage?.close()
})

interface Watching {
  /** The text that has arrived. */
  text: string
  hasEnded: boolean
  leave(): void
}

async function watch(cookie: string): Promise<Watching> {
  const leaving = new AbortController()
  const headers = { Cookie: cookie, Accept: 'text/event-stream' }
  const answer = await stage.ask('/console', { headers, signal: leaving.signal })
  expect(answer.status).toBe(200)
  const watching: Watching = { text: '', hasEnded: false, leave: () => leaving.abort() }
  const read = async () => {
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) watching.text += chunk
  }
  void read()
    .catch(() => {})
    .finally(() => {
      watching.hasEnded = true
    })
  await until(() => watching.text !== '')
  return watching
}

test('a page stays live until its session expires, its key is revoked or its owner signs out', async () => {
  const ofBob = await createConsoleKey(stage.staff.client, 'bob')
  const cookies = [await stage.signIn(), await stage.signIn(), await stage.signIn(ofBob)]
  const [expiring, leaving, staying] = await Promise.all(cookies.map((cookie) => watch(cookie)))
  await stage.staff.sql('update console_sessions set expires_at = now() where session_hash = $1', [
    sha256(cookies[0]!.split('=')[1]!),
  ])
  await until(() => expiring!.hasEnded)
  await stage.signOut(cookies[1]!)
  await until(() => leaving!.hasEnded)
  expect(staying!.hasEnded).toBe(false)
  await stage.staff.sql(`update console_keys set revoked_at = now() where name = 'bob'`)
  await until(() => staying!.hasEnded)
  const again = await stage.ask('/console', {
    headers: { Cookie: cookies[2]!, Accept: 'text/event-stream' },
  })
  expect(again.status).toBe(401)
})

test('a page beyond the limit of live pages says so, and does not update until another is closed', async () => {
  const cookie = await stage.signIn()
  const open = Array.from({ length: limits.consoleViewersMax }, () => watch(cookie))
  const watching = await Promise.all(open)
  const full = await watch(cookie)
  await until(() => full.hasEnded)
  expect(full.text).toMatch(
    /^event: full\ndata: Not kept up to date: too many pages are open.*\nretry: 15000\n\n$/,
  )
  watching[0]!.leave()
  await until(async () => {
    const next = await watch(cookie)
    next.leave()
    return next.text.includes('event: content')
  })
  for (const each of watching) each.leave()
})

test('a process that stops closes its open pages without waiting for them', async () => {
  const cookie = await stage.signIn()
  let watching = await watch(cookie)
  // The server may not have noticed yet that the pages of earlier tests have left.
  await until(async () => {
    if (watching.text.includes('event: content')) return true
    watching = await watch(cookie)
    return false
  })
  isStopped = true
  await stage.close()
  await until(() => watching.hasEnded)
})
