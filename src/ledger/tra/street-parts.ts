/**
 * What stands before the name of a street in a whole one: `12 bis rue` of `12 bis rue des Érables`. Joined again with
 * blanks, the parts and the name give the whole.
 * @param columns of the field of the whole, which may have been cut
 * @returns undefined if the whole does not contain the name
 */
export function streetParts(
  whole: string,
  name: string,
  columns: number,
): { number: string | null; locatingIndex: string | null; streetType: string | null } | undefined {
  const none = { number: null, locatingIndex: null, streetType: null }
  if (whole === name) return none
  const words = whole.split(' ')
  for (let count = 1; count <= words.length; count++) {
    const before = words.slice(0, count)
    if (`${before.join(' ')} ${name}`.slice(0, columns).trimEnd() !== whole) continue
    const hasNumber = /^\d/.test(before[0]!)
    const hasIndex = hasNumber && /^(?:bis|ter|quater|[a-z])$/i.test(before[1] ?? '')
    const type = before.slice(hasIndex ? 2 : hasNumber ? 1 : 0).join(' ')
    return {
      number: hasNumber ? before[0]! : null,
      locatingIndex: hasIndex ? before[1]! : null,
      streetType: type || null,
    }
  }
  return undefined
}
