/**
 * The signature in the address of a stored file: who has the address may download until it expires, nobody can make
 * another one from it. Pure; time comes in as an argument.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

export interface FileLink {
  key: string
  /** The name under which it is saved. */
  fileName: string
  /** Epoch seconds from which on it is no longer good. */
  expires: number
}

/** Path and query, to be put behind the public address of the service. */
export function signLink(link: FileLink, signingKey: string): string {
  const query = new URLSearchParams({
    expires: String(link.expires),
    name: link.fileName,
    signature: signature(link, signingKey),
  })
  return `/files/${link.key}?${query}`
}

/**
 * @param target path and query as they were sent
 * @returns undefined where this is no link that signLink made; whether it has expired is for the caller to say
 */
export function readLink(target: string, signingKey: string): FileLink | undefined {
  const [path = '', search = ''] = target.split('?', 2)
  const query = new URLSearchParams(search)
  const [expires, fileName, given] = ['expires', 'name', 'signature'].map((name) => query.get(name))
  if (query.size !== 3 || fileName == null || given == null || !/^\d{1,12}$/.test(expires ?? ''))
    return undefined
  const link: FileLink = { key: path.slice('/files/'.length), fileName, expires: Number(expires) }
  // As texts: the last sign of one holds two bits that decoding would not look at.
  const bytes = Buffer.from(given)
  const expected = Buffer.from(signature(link, signingKey))
  return bytes.length === expected.length && timingSafeEqual(bytes, expected) ? link : undefined
}

/** JSON keeps the three apart, whatever a file name contains. */
function signature({ key, fileName, expires }: FileLink, signingKey: string): string {
  return createHmac('sha256', Buffer.from(signingKey, 'hex'))
    .update(JSON.stringify([key, expires, fileName]))
    .digest('base64url')
}
