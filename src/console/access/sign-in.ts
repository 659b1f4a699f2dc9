/** Signing in with a key, and signing out: the form, the cookie, and what the audit records of both. */
import type { Context } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { html } from 'hono/html'
import type { Pool } from 'pg'
import { recordStaffAct } from '../../audit/audit.sql.ts'
import {
  beginSession,
  endSession,
  isKeyInUse,
  readSession,
  type Session,
} from '../../auth/console-keys.sql.ts'
import { limits } from '../../config.ts'
import { inTransaction } from '../../db/pool.ts'
import { type ConsoleEdge, type Html, Refusal } from '../page.ts'
import { remember } from '../remember.ts'

type Visit = Context<ConsoleEdge>

/**
 * Whether the browser reached us over HTTPS. A proxy that ends TLS reports this in the header X-Forwarded-Proto. Each
 * further proxy appends the protocol over which it was reached, so the first entry is that of the browser. No proxy
 * has to be trusted: a false header only keeps its sender from signing in.
 */
const isBehindHttps = (c: Visit) => /^https *(?:,|$)/i.test(c.req.header('x-forwarded-proto') ?? '')

const cookieName = (c: Visit) => (isBehindHttps(c) ? '__Secure-grandlivre-console' : 'grandlivre-console')

const cookieOptions = (c: Visit) =>
  ({
    path: '/console',
    httpOnly: true,
    sameSite: 'Strict',
    secure: isBehindHttps(c),
    maxAge: limits.consoleSessionMs / 1000,
  }) as const

/** The session of a request; undefined if nobody is signed in. */
export async function sessionOf(c: Visit, owner: Pool): Promise<Session | undefined> {
  const token = getCookie(c, cookieName(c))
  return token === undefined ? undefined : readSession(owner, token)
}

/** @param to path to go to after signing in, @param problem why the last attempt failed */
export function signInForm(to: string, problem?: string): Html {
  return html`<h1>Sign in</h1>
<form method="post" action="/console/sign-in" class="sign-in">
<input type="hidden" name="to" value="${to}">
<input hidden name="username" autocomplete="username" value="console">
<label for="key">Key</label>
<input id="key" name="key" type="password" required autofocus autocomplete="current-password" spellcheck="false"${problem === undefined ? '' : html` aria-invalid="true" aria-describedby="problem"`}>
${problem === undefined ? '' : html`<p id="problem" class="problem" role="alert">${problem}</p>`}
<button>Sign in</button>
</form>
<p class="hint">The command <code>npm run cli -- console key create --name &lt;you&gt;</code> makes a key.</p>`
}

/** Returns the path to go to after signing in. It is always a path of the console. */
export function safeTarget(to: string | null): string {
  return to !== null && !to.includes('..') && /^\/console(?:[/?][\w/?=&.:%+-]*)?$/.test(to) ? to : '/console'
}

/** Maximum number of addresses whose attempts are remembered. */
const addressesMax = 1_000

type Attempts = ReturnType<typeof countAttempts>

/** Counts how often sign-ins from an address have failed. @param now milliseconds */
export function countAttempts(now: () => number) {
  const failed = new Map<string, { since: number; count: number }>()
  return {
    /** Milliseconds until this address may try again; 0 if it may try now. */
    waitMs(address: string): number {
      const { since, count } = failed.get(address) ?? { since: 0, count: 0 }
      if (count < limits.consoleAttemptsMax) return 0
      return Math.max(0, since + limits.consoleAttemptsMs - now())
    },
    /** Counts an attempt before its result is known, so that attempts that run at the same time count, too. */
    begin(address: string): void {
      const before = failed.get(address)
      const isOver = !before || now() - before.since >= limits.consoleAttemptsMs
      const counted = isOver ? { since: now(), count: 1 } : { ...before, count: before.count + 1 }
      // Forgetting the oldest is safe: nobody guesses a key of 256 bits from many addresses either.
      remember(failed, address, counted, addressesMax)
    },
    /** Takes back the count of an attempt that has not failed. */
    forgive(address: string): void {
      const before = failed.get(address)
      if (before) before.count = Math.max(0, before.count - 1)
    },
  }
}

/**
 * Signs in with a key. The right key is accepted however many attempts have failed: nobody guesses 256 bits. Behind a
 * proxy all staff have one address, so a limit that includes right keys would let anybody lock them out.
 *
 * Once too many attempts have failed, further wrong keys cost only a look-up, so that a flood of them leaves the
 * console's connections to its pages. They are not recorded, because they would fill the audit.
 * @returns the session; undefined if the key is not known
 * @throws {Refusal} 429 if the key is not known and too many attempts from this address have failed
 */
export async function signIn(c: Visit, owner: Pool, attempts: Attempts, key: string) {
  const address = c.env.incoming.socket.remoteAddress ?? 'unknown'
  const waitMs = attempts.waitMs(address)
  if (waitMs > 0 && !(await isKeyInUse(owner, key.trim()))) {
    const seconds = Math.ceil(waitMs / 1000)
    const message = `Too many sign-ins have failed. Try again in ${seconds} seconds, or with the right key.`
    throw new Refusal(429, message, { 'Retry-After': String(seconds) })
  }
  attempts.begin(address)
  let isRefused = false
  try {
    const session = await startSession(owner, key.trim(), address)
    isRefused = session === undefined
    if (session) setCookie(c, cookieName(c), session.token, cookieOptions(c))
    return session
  } finally {
    if (!isRefused) attempts.forgive(address)
  }
}

function startSession(owner: Pool, key: string, address: string): Promise<Session | undefined> {
  return inTransaction(owner, async (client) => {
    const begun = await beginSession(client, key)
    const [staff, act] = begun ? [`console ${begun.name}`, 'console sign-in'] : ['console', 'console refuse']
    await recordStaffAct(client, { staff, act, details: { address } })
    return begun
  })
}

export async function signOut(c: Visit, owner: Pool, session: Session): Promise<void> {
  await inTransaction(owner, async (client) => {
    await endSession(client, session)
    await recordStaffAct(client, { staff: `console ${session.name}`, act: 'console sign-out' })
  })
  deleteCookie(c, cookieName(c), { path: '/console', secure: isBehindHttps(c) })
}
