import { createHash } from 'node:crypto'

/**
 * Identifies what an answer shows, in any representation: the part of its ETag that `If-Match` compares.
 * @param named all that the answer depends on, with the cursor of the ledger and the revision of its format
 */
export function tagOf(...named: unknown[]): string {
  return createHash('sha256').update(JSON.stringify(named)).digest('base64url').slice(0, 22)
}
