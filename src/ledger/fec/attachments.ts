/** Attachments of movements: the addresses in the columns PJ and PieceJointe (docs/spec/imports.md#movements). */

export function isAttachmentColumn(name: string): boolean {
  return /^(PJ|PieceJointe)$/i.test(name)
}

/**
 * Addresses are separated by `*`; what is no http(s) address stays in its column alone. A name that several addresses
 * want gets ` (2)`, ` (3)` before its ending.
 * @returns null if there is none
 */
export function attachmentsIn(values: readonly string[]): Record<string, string> | null {
  const found = new Map<string, string>()
  for (const address of values.flatMap((value) => value.split('*'))) {
    const text = address.trim()
    if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) continue
    if (![...found.values()].includes(text)) found.set(freeName(nameIn(text), found), text)
  }
  return found.size === 0 ? null : Object.fromEntries(found)
}

/** The last segment of the path, or the host if the path has none. */
function nameIn(address: string): string {
  const { pathname, host } = new URL(address)
  const segment = pathname.split('/').findLast((part) => part !== '') ?? host
  try {
    const decoded = decodeURIComponent(segment)
    // A NUL could not be stored, and a name with a slash would lead who saves the file under it to another folder.
    return /[\p{Cc}/\\]/u.test(decoded) ? segment : decoded
  } catch {
    return segment
  }
}

function freeName(name: string, taken: ReadonlyMap<string, string>): string {
  const dot = name.lastIndexOf('.')
  const [stem, ending] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, '']
  let free = name
  for (let copy = 2; taken.has(free); copy += 1) free = `${stem} (${copy})${ending}`
  return free
}
