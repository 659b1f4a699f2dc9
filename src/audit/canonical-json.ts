import { createHash } from 'node:crypto'

/** Longer details are kept as their length and SHA-256: a selection may name thousands of entries. */
const charactersMax = 2_000

/**
 * JSON with the members of objects in the order of their names and without those that are undefined: equal values have
 * equal texts, within one process and across versions.
 */
export function canonicalJson(value: unknown): string {
  const text = JSON.stringify(value, (_, member: unknown) => {
    if (member === null || typeof member !== 'object' || Array.isArray(member)) return member
    return Object.fromEntries(Object.entries(member).toSorted(([one], [other]) => (one < other ? -1 : 1)))
  })
  if (text.length <= charactersMax) return text
  return JSON.stringify({ characters: text.length, sha256: createHash('sha256').update(text).digest('hex') })
}
