import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Link, Start } from './audit.sql.ts'

/**
 * Signs the start of what retention has left, with a key derived from MASTER_KEY: the database alone cannot make another.
 * @param at seconds since 1970 with six decimals
 */
export function signStart({ count, hash }: Link, at: string, masterKey: Buffer): Buffer {
  const key = createHmac('sha256', masterKey).update('grandlivre audit start').digest()
  return createHmac('sha256', key)
    .update(JSON.stringify([count, hash, at]))
    .digest()
}

/** @param masterKeys one of which has to have signed it */
export function isSigned({ signature, at, ...link }: Start, masterKeys: readonly Buffer[]): boolean {
  if (signature === null || at === null) return false
  return masterKeys.some((masterKey) => {
    const expected = signStart(link, at, masterKey)
    return signature.length === expected.length && timingSafeEqual(signature, expected)
  })
}
