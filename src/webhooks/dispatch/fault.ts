/** Why a subscriber gave no response, as one of a few words. Pure. */
import { RefusedTarget } from '../target.ts'

export const noResponseFaults = [
  /** The rules for targets forbid it: no https, or an address that is not public. */
  'address-refused',
  /** Its name has no address, or no name server answered. */
  'dns',
  /** Nothing listens there, or no way leads there. */
  'connection-refused',
  /** TLS failed: the certificate, the name in it, or the handshake. */
  'tls',
  /** It took too long, the connection included. */
  'time-out',
  /** The connection ended before a response, or what came was not HTTP. */
  'no-answer',
] as const

export type NoResponseFault = (typeof noResponseFaults)[number]

/** The whole attempt took too long. */
export class TooLate extends Error {}

const refusedCodes = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'EACCES',
  'EADDRNOTAVAIL',
])
const lateCodes = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT'])
/** Of OpenSSL and Node: a certificate that does not hold, a handshake that failed. */
const tlsCodes =
  /^(?:ERR_SSL_|ERR_TLS_|CERT_|CRL_|ERROR_IN_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_|HOSTNAME_|EPROTO$)/

/** @param error that the request rejected with; several in one if several addresses were tried */
export function faultOf(error: unknown): NoResponseFault {
  if (error instanceof RefusedTarget) return 'address-refused'
  if (error instanceof TooLate) return 'time-out'
  // The first address that was tried speaks for all.
  if (error instanceof AggregateError && error.errors.length > 0) return faultOf(error.errors[0])
  const { code = '', syscall = '', message = '' } = error as Partial<NodeJS.ErrnoException>
  if (/^(?:query|getaddrinfo)/.test(syscall)) return 'dns'
  if (refusedCodes.has(code)) return 'connection-refused'
  if (lateCodes.has(code)) return 'time-out'
  // A connection reset in the handshake has the code of any reset.
  if (tlsCodes.test(code) || message.includes('secure TLS connection')) return 'tls'
  return 'no-answer'
}
