/** Why a subscriber gave no response, as one of a few words. Pure. */
import type { DeliveryOutcome } from '../../telemetry/metrics.ts'
import { RefusedTarget } from '../target.ts'

/** Each fault, and what metrics call it. */
export const outcomesOfFaults = {
  /** The rules for targets forbid the address: it is not https, or not public. */
  'address-refused': 'blocked',
  /** The host name has no address, or no name server answered. */
  dns: 'unreachable',
  /** Nothing listens at the address, or no route leads there. */
  'connection-refused': 'unreachable',
  /** TLS failed: the certificate, the name in it, or the handshake. */
  tls: 'tls',
  /** The attempt took too long, connecting included. */
  'time-out': 'timeout',
  /** The connection ended before a response, or the response was not HTTP. */
  'no-answer': 'unreachable',
} as const satisfies Record<string, DeliveryOutcome>

export type NoResponseFault = keyof typeof outcomesOfFaults

export const noResponseFaults = Object.keys(outcomesOfFaults) as NoResponseFault[]

/** The error of an attempt that took too long as a whole. */
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
/** Error codes of OpenSSL and Node for an invalid certificate or a failed handshake. */
const tlsCodes =
  /^(?:ERR_SSL_|ERR_TLS_|CERT_|CRL_|ERROR_IN_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_|HOSTNAME_|EPROTO$)/

/** @param error the request's rejection; it combines several errors if several addresses were tried */
export function faultOf(error: unknown): NoResponseFault {
  if (error instanceof RefusedTarget) return 'address-refused'
  if (error instanceof TooLate) return 'time-out'
  // The error of the first address that was tried decides.
  if (error instanceof AggregateError && error.errors.length > 0) return faultOf(error.errors[0])
  const { code = '', syscall = '', message = '' } = error as Partial<NodeJS.ErrnoException>
  if (/^(?:query|getaddrinfo)/.test(syscall)) return 'dns'
  if (refusedCodes.has(code)) return 'connection-refused'
  if (lateCodes.has(code)) return 'time-out'
  // A reset during the handshake has the same code as any other reset, so the message decides.
  if (tlsCodes.test(code) || message.includes('secure TLS connection')) return 'tls'
  return 'no-answer'
}
