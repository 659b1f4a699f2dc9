/** Where the members of a JSON object are in its bytes, so that their exact bytes can be copied. Pure. */

export interface Member {
  name: string
  /** The first byte of the member: the quote before its name. */
  start: number
  /** The first byte of its value. */
  value: number
  /** After the last byte of its value. */
  end: number
}

const quote = 34
const comma = 44
const backslash = 92

/** @param start the opening brace of an object without blanks between its tokens, as the service writes it */
export function membersOf(json: Buffer, start: number): Member[] {
  const members: Member[] = []
  for (let at = start + 1; json[at] === quote; at += 1) {
    const nameEnd = endOfText(json, at)
    const end = endOfValue(json, nameEnd + 1)
    members.push({ name: json.toString('latin1', at + 1, nameEnd - 1), start: at, value: nameEnd + 1, end })
    at = end
    if (json[at] !== comma) break
  }
  return members
}

/** Where each item of an array is, from its first byte to the one after its last. */
export function itemsOf(json: Buffer, start: number): [start: number, end: number][] {
  const items: [number, number][] = []
  for (let at = start + 1; json[at] !== closingBracket; at += 1) {
    const end = endOfValue(json, at)
    items.push([at, end])
    at = end
    if (json[at] !== comma) break
  }
  return items
}

const openingBracket = 91
const closingBracket = 93
const openingBrace = 123
const closingBrace = 125

/** After the closing quote of the text that begins here. A quote after an odd number of backslashes does not end it. */
function endOfText(json: Buffer, start: number): number {
  for (let at = json.indexOf(quote, start + 1); at !== -1; at = json.indexOf(quote, at + 1)) {
    let first = at
    while (json[first - 1] === backslash) first -= 1
    if ((at - first) % 2 === 0) return at + 1
  }
  throw new Error('A line of the ledger is not whole: a text in it has no end')
}

function endOfValue(json: Buffer, start: number): number {
  let depth = 0
  for (let at = start; at < json.length; at += 1) {
    switch (json[at]) {
      case quote:
        at = endOfText(json, at) - 1
        if (depth === 0) return at + 1
        break
      case openingBracket:
      case openingBrace:
        depth += 1
        break
      case closingBracket:
      case closingBrace:
        if (depth === 0) return at
        depth -= 1
        if (depth === 0) return at + 1
        break
      case comma:
        if (depth === 0) return at
    }
  }
  return json.length
}
