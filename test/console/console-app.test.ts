/** The answers of the console to requests of browsers, other sites and visitors without a key. */
import { once } from 'node:events'
import { get } from 'node:http'
import { beforeAll, expect, test } from 'vitest'
import { createConsoleKey, revokeConsoleKey } from '../../src/auth/console-keys.sql.ts'
import { sha256 } from '../../src/auth/secrets.ts'
import { setConsoleStage } from '../support/console/console-stage.ts'
import { forTests } from '../support/for-tests.ts'

const stage = forTests(setConsoleStage)
let cookie: string
beforeAll(async () => {
  cookie = await stage.signIn()
})

const form = (fields: Record<string, string>) => ({ method: 'POST', body: new URLSearchParams(fields) })

test('a visitor is sent to the sign-in page, then back to the page that was requested', async () => {
  const answer = await stage.ask('/console/exports/export_1/cancel')
  expect(answer.status).toBe(303)
  const to = answer.headers.get('location')!
  expect(to).toBe('/console/sign-in?to=%2Fconsole%2Fexports%2Fexport_1%2Fcancel')
  expect(await (await stage.ask(to)).text()).toContain('value="/console/exports/export_1/cancel"')
  const signedIn = await stage.ask(
    '/console/sign-in',
    form({ key: stage.key, to: '/console/exports/export_1/cancel' }),
  )
  expect([signedIn.status, signedIn.headers.get('location')]).toEqual([
    303,
    '/console/exports/export_1/cancel',
  ])
})

test('the cookie is sent only to this console, and behind https only over https', async () => {
  const cookieOf = async (headers = {}) => {
    const answer = await stage.ask('/console/sign-in', { ...form({ key: stage.key }), headers })
    return answer.headers.get('set-cookie')!
  }
  const plain = await cookieOf()
  expect(plain).toMatch(
    /^grandlivre-console=glv_session_[\w-]{43}; Max-Age=43200; Path=\/console; HttpOnly; SameSite=Strict$/,
  )
  const secure = /^__Secure-grandlivre-console=.*; Secure/
  for (const proxies of ['https', 'https, http', 'HTTPS,http', 'https , https'])
    expect(await cookieOf({ 'X-Forwarded-Proto': proxies }), proxies).toMatch(secure)
  // The browser reached the first proxy without TLS, and would not send back a cookie for https.
  for (const proxies of ['http', 'http, https', '', ', https', 'httpsx', 'ftp, https'])
    expect(await cookieOf({ 'X-Forwarded-Proto': proxies }), proxies).toMatch(/^grandlivre-console=.*Strict$/)
})

test('every answer forbids scripts and styles from other hosts, frames and cached copies', async () => {
  for (const path of ['/console/sign-in', '/console', '/console/nowhere', '/console/assets/console.js']) {
    const { headers } = await stage.ask(path, { headers: { Cookie: cookie } })
    expect(headers.get('content-security-policy'), path).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    )
    expect(headers.get('x-frame-options'), path).toBe('DENY')
    expect(headers.get('referrer-policy'), path).toBe('same-origin')
    expect(headers.get('cache-control'), path).toBe('no-store')
    expect(headers.get('x-content-type-options'), path).toBe('nosniff')
  }
  const live = await stage.ask('/console', { headers: { Cookie: cookie, Accept: 'text/event-stream' } })
  expect(live.headers.get('content-type')).toBe('text/event-stream')
  expect(live.headers.get('cache-control')).toBe('no-store')
  await live.body!.cancel()
})

test('revoking a key ends all its sessions; signing out ends one', async () => {
  const key = (await createConsoleKey(stage.staff.client, 'bob'))!
  const ofBob = await stage.signIn(key)
  const statusOf = async (of: string) => (await stage.ask('/console', { headers: { Cookie: of } })).status
  expect(await statusOf(ofBob)).toBe(200)
  await revokeConsoleKey(stage.staff.client, 'bob')
  expect(await statusOf(ofBob)).toBe(303)
  expect((await stage.ask('/console/sign-in', form({ key }))).status).toBe(401)
  const mine = await stage.signIn()
  expect((await stage.signOut(mine)).status).toBe(303)
  expect([await statusOf(mine), await statusOf(cookie)]).toEqual([303, 200])
})

test('a session ends after twelve hours', async () => {
  const old = await stage.signIn()
  const hash = sha256(old.split('=')[1]!)
  const rows = await stage.staff.sql(
    `select extract(epoch from expires_at - clock_timestamp()) / 3600 as hours from console_sessions where session_hash = $1`,
    [hash],
  )
  expect(Number(rows[0].hours)).toBeCloseTo(12, 1)
  await stage.staff.sql('update console_sessions set expires_at = now() where session_hash = $1', [hash])
  expect((await stage.ask('/console', { headers: { Cookie: old } })).status).toBe(303)
})

test('a request for the host name of another machine is refused', async () => {
  const answerOf = async (host: string) => {
    const headers = { Cookie: cookie, Host: host }
    const [answer] = await once(get(`${stage.origin}/console`, { headers, agent: false }), 'response')
    answer.resume()
    return answer.statusCode
  }
  expect(await answerOf('evil.example.com')).toBe(421)
  expect(await answerOf(new URL(stage.origin).host)).toBe(200)
})

test('a form without the token of its session, or from another site, changes nothing', async () => {
  const other = await stage.signIn()
  const signOut = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
    stage.ask('/console/sign-out', { ...form(fields), headers: { Cookie: other, ...headers } })
  expect((await signOut({})).status).toBe(403)
  expect((await signOut({ csrf: 'x' })).status).toBe(403)
  const csrf = await stage.csrfOf(other)
  expect((await signOut({ csrf }, { 'Sec-Fetch-Site': 'cross-site' })).status).toBe(403)
  expect(
    (await signOut({ csrf }, { 'Sec-Fetch-Site': 'same-site', Origin: 'http://127.0.0.1:1' })).status,
  ).toBe(403)
  const foreign = await fetch(`${stage.origin}/console/sign-out`, {
    ...form({ csrf }),
    headers: { Cookie: other, Origin: 'https://evil.example.com' },
    redirect: 'manual',
  })
  expect(foreign.status).toBe(403)
  expect((await stage.ask('/console', { headers: { Cookie: other } })).status).toBe(200)
  expect((await signOut({ csrf })).status).toBe(303)
})

test('an unknown path is 404, a wrong method 405, a long form 413, another kind of body 415', async () => {
  const headers = { Cookie: cookie }
  expect((await stage.ask('/console/nowhere', { headers })).status).toBe(404)
  expect((await stage.ask('/api/v1/key/info', { headers })).status).toBe(404)
  const deleted = await stage.ask('/console', { method: 'DELETE', headers })
  expect([deleted.status, deleted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  expect((await stage.ask('/console/sign-out', { headers })).status).toBe(405)
  const long = 'x'.repeat(70_000)
  expect((await stage.ask('/console/sign-in', form({ key: long }))).status).toBe(413)
  const json = { method: 'POST', body: '{}', headers: { ...headers, 'Content-Type': 'application/json' } }
  expect((await stage.ask('/console/sign-out', json)).status).toBe(415)
  for (const id of ['export_1', 'export_%00', '%00'])
    expect((await stage.ask(`/console/exports/${id}/cancel`, { headers })).status, id).toBe(404)
})

test('the port of the API does not serve the console', async () => {
  expect((await fetch(`${stage.service.url}/console`)).status).toBe(404)
})

// This test is the last: after it, wrong keys of this address are limited for a minute.
test('wrong keys are limited even if they are tried at once; the right key is always accepted', async () => {
  const attempt = (key: string) => stage.ask('/console/sign-in', form({ key }))
  const answers = await Promise.all(Array.from({ length: 15 }, (_, i) => attempt(`glv_console_${i}`)))
  expect(answers.filter(({ headers }) => headers.has('set-cookie'))).toEqual([])
  // The revoked key of bob was the first failed attempt.
  expect(answers.map(({ status }) => status).toSorted()).toEqual([
    ...Array(9).fill(401),
    ...Array(6).fill(429),
  ])
  const recorded = async (act: string) =>
    (await stage.staff.sql('select from audit_rows where act = $1', [act])).length
  const before = [await recorded('console refuse'), await recorded('console sign-in')]
  for (let i = 0; i < 3; i++) {
    const admitted = await attempt(stage.key)
    expect([admitted.status, admitted.headers.get('set-cookie')]).toEqual([303, expect.any(String)])
    const refused = await attempt('glv_console_x')
    expect([refused.status, refused.headers.get('set-cookie')]).toEqual([429, null])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  expect([await recorded('console refuse'), await recorded('console sign-in')]).toEqual([
    before[0],
    before[1]! + 3,
  ])
  // Further wrong keys are only looked up. Otherwise they would wait for this lock, and pages for their connections.
  await stage.staff.sql('begin; lock table console_sessions in share mode')
  try {
    const refused = await Promise.all(Array.from({ length: 20 }, (_, i) => attempt(`glv_console_${i}`)))
    expect(refused.map(({ status }) => status)).toEqual(Array(20).fill(429))
  } finally {
    await stage.staff.sql('rollback')
  }
})
