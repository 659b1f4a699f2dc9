/**
 * Decides which requests the console answers. Pages of other sites in the same browser must not act as staff, nor read what staff
 * see.
 *
 * - Host: only loopback names, bare addresses and CONSOLE_HOST are accepted (`isOurHost`).
 * - Origin: browsers state where a form comes from: in Sec-Fetch-Site, or in Origin if they do not trust the connection.
 *   The cookie is SameSite=Strict, but other ports of this machine count as the same site.
 * - Token: a form carries a token of its session (`csrf`).
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { sha256 } from '../../auth/secrets.ts'

/** Whether a form was sent from a page of this console. */
export function isOurOrigin(headers: Readonly<Record<string, string | undefined>>): boolean {
  const { host, origin, 'sec-fetch-site': site } = headers
  if (site !== undefined) return site === 'same-origin'
  return origin !== undefined && URL.canParse(origin) && new URL(origin).host === host
}

/** The token that forms carry. It is derived from the token of the session and does not reveal it. */
export function csrfOf(sessionToken: string): string {
  return createHmac('sha256', sessionToken).update('csrf').digest('base64url')
}

export function isCsrf(given: string | null, sessionToken: string): boolean {
  return given !== null && timingSafeEqual(sha256(given), sha256(csrfOf(sessionToken)))
}

export const securityHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'Cache-Control': 'no-store',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  // With no-referrer, browsers would send forms with the origin `null`.
  'Referrer-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
}
