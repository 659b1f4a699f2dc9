/**
 * Parses CSV as RFC 4180 describes it, character by character, and refuses everything else. An unquoted empty field is
 * null, a quoted one an empty text.
 */
export interface CsvField {
  /** Null if it is empty and not quoted. */
  text: string | null
  isQuoted: boolean
}

export function parseCsv(text: string): CsvField[][] {
  const records: CsvField[][] = []
  let at = 0
  const fail = (what: string): never => {
    throw new Error(`${what} at ${at}: ${JSON.stringify(text.slice(Math.max(0, at - 40), at + 40))}`)
  }
  const quoted = (): CsvField => {
    let value = ''
    for (at++; ; at++) {
      if (at >= text.length) fail('a quoted field without an end')
      if (text[at] !== '"') value += text[at]
      else if (text[at + 1] === '"') {
        value += '"'
        at++
      } else break
    }
    at++
    return { text: value, isQuoted: true }
  }
  const bare = (): CsvField => {
    const from = at
    while (at < text.length && !',\r\n"'.includes(text[at]!)) at++
    const value = text.slice(from, at)
    return { text: value === '' ? null : value, isQuoted: false }
  }
  while (at < text.length) {
    const record: CsvField[] = []
    for (;;) {
      record.push(text[at] === '"' ? quoted() : bare())
      if (text[at] !== ',') break
      at++
    }
    if (text.slice(at, at + 2) !== '\r\n') fail('a record without CR LF')
    at += 2
    records.push(record)
  }
  return records
}
