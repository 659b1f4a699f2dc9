/** What a client does with the answer to `since` (docs/spec/changes.md#changes-since): changes its copy in NDJSON. */

export interface Delta {
  since: string
  cursor: string
  /** Inclusive. */
  entries: [from: string, to: string][]
  /** Each with its line feed. */
  lines: string[]
}

/** @throws if the body does not begin with a line of ranges that ascend and are disjoint */
export function readDelta(body: string): Delta {
  const [first = '', ...lines] = linesOf(body)
  const { since, cursor, entries, ...more } = JSON.parse(first) as Omit<Delta, 'lines'>
  if (Object.keys(more).length > 0) throw new Error(`unexpected members: ${first}`)
  let last = -1
  for (const [from, to] of entries) {
    if (!(last < Number(from) && Number(from) <= Number(to)))
      throw new Error(`not disjoint and ascending: ${first}`)
    last = Number(to)
  }
  return { since, cursor, entries, lines }
}

/**
 * Drops the lines of the copy whose entry id is in a range, adds those of the delta, and sorts by entry id, then by
 * movement id.
 * @param copy movements or entries in NDJSON, as of the cursor `since`
 * @param delta the body of the answer
 * @returns the copy as of the cursor of the delta
 */
export function applyDelta(copy: string, delta: string): string {
  const { entries, lines } = readDelta(delta)
  const isStale = ([entryId]: Place) =>
    entries.some(([from, to]) => Number(from) <= entryId && entryId <= Number(to))
  const kept = placed(linesOf(copy)).filter(({ place }) => !isStale(place))
  const added = placed(lines)
  const stray = added.find(({ place }) => !isStale(place))
  if (stray) throw new Error(`a line outside the ranges: ${stray.line}`)
  return [...kept, ...added]
    .sort((a, b) => a.place[0] - b.place[0] || a.place[1] - b.place[1])
    .map(({ line }) => line)
    .join('')
}

/** Ids are below 2^53. */
type Place = [entryId: number, movementId: number]

function placed(lines: string[]): { line: string; place: Place }[] {
  return lines.map((line) => {
    // A movement contains its entry; an entry has its own id.
    const { producerId, entry } = JSON.parse(line) as { producerId: string; entry?: { producerId: string } }
    return { line, place: entry ? [Number(entry.producerId), Number(producerId)] : [Number(producerId), 0] }
  })
}

/** A line ends with a line feed and with nothing else. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n/g) ?? []
}
