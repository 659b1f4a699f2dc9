/** Where `listen` sends events, signed with the partner secret. Pure. */
import { isIP } from 'node:net'
import { UsageError } from '../../../../terminal/src/command-errors.ts'

/**
 * Events of a ledger stay on this machine, unless the user wants otherwise: a wrong address would give them away.
 * @throws {UsageError} that says what to change
 */
export function readTarget(text: string, allowRemote: boolean): URL {
  if (!URL.canParse(text) || !/^https?:\/\//i.test(text))
    throw new UsageError(`"${text}" is no address of a receiver, such as http://localhost:3000/hook`)
  const url = new URL(text)
  if (url.username !== '' || url.password !== '')
    throw new UsageError(
      `The address of the receiver holds a user name or password; deliveries are signed instead`,
    )
  if (!allowRemote && !isLoopback(url.hostname))
    throw new UsageError(
      `${url.hostname} is not this machine, and the events of a ledger would leave it. --allow-remote allows that`,
    )
  url.hash = ''
  return url
}

function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) === 4) return host.startsWith('127.')
  // The URL parser has written every form of the address in its shortest way.
  return host === '::1' || host === 'localhost' || host.endsWith('.localhost')
}
