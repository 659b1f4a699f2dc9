/**
 * Signs the address of a stored file. Anyone with the address can download the file until the address expires, but
 * cannot derive another address from it. Pure: the time is an argument.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

export interface FileLink {
  key: string
  /** The name under which clients save the file. */
  fileName: string
  /** Epoch seconds at which it expires. */
  expires: number
}

/** Returns path and query of the link, to append to the public address of the service. */
export function signLink(link: FileLink, signingKey: string): string {
  const query = new URLSearchParams({
    expires: String(link.expires),
    name: link.fileName,
    signature: signature(link, signingKey),
  })
  return `/files/${link.key}?${query}`
}

/**
 * Reads a link.
 * @param target path and query, as sent
 * @returns undefined if signLink did not make this link with one of these keys. The caller must check whether it has
 *   expired
 */
export function readLink(target: string, signingKeys: readonly string[]): FileLink | undefined {
  const [path = '', search = ''] = target.split('?', 2)
  const query = new URLSearchParams(search)
  const [expires, fileName, given] = ['expires', 'name', 'signature'].map((name) => query.get(name))
  if (query.size !== 3 || fileName == null || given == null || !/^\d{1,12}$/.test(expires ?? ''))
    return undefined
  const link: FileLink = { key: path.slice('/files/'.length), fileName, expires: Number(expires) }
  // Signatures are compared as text: decoding would ignore two bits of the last base64url character.
  const bytes = Buffer.from(given)
  const isSigned = signingKeys.some((signingKey) => {
    const expected = Buffer.from(signature(link, signingKey))
    return bytes.length === expected.length && timingSafeEqual(bytes, expected)
  })
  return isSigned ? link : undefined
}

/** JSON keeps the three fields apart, whatever a file name contains. */
function signature({ key, fileName, expires }: FileLink, signingKey: string): string {
  return createHmac('sha256', Buffer.from(signingKey, 'hex'))
    .update(JSON.stringify([key, expires, fileName]))
    .digest('base64url')
}
