/**
 * Cuts the text of a MAD file into its items: `metadata`, `data.accountingFolder`, and each item of the lists of
 * `data`. One item is in memory at a time, and whatever the order of the members. stream-json reads the text; numbers
 * stay digits.
 */
import { strict as assert } from 'node:assert'
import { jsonParser, type Token } from 'stream-json/core/parser.js'
import { jsonVerifier } from 'stream-json/core/utils/verifier.js'
import type { Json, JsonObject } from '../../items/any-json.ts'
import { JsonNumber } from '../../minor-units.ts'

/** One item of the file. */
export interface FileItem {
  /** Such as `data.accounts`, or `data["a.b"]`; empty for the whole file if it is no object. */
  place: string
  /** In a list, from 0. */
  index: number | undefined
  value: Json
}

/** Such as `data.accounts[3]`. */
export function pathOf({ place, index }: Omit<FileItem, 'value'>): string {
  return index === undefined ? place || 'the file' : `${place}[${index}]`
}

/** The path of a member, such as `data.accounts`: a name that is no word stands in brackets, `data["a.b"]`. */
export function memberPath(owner: string, name: string): string {
  if (!/^\w+$/.test(name)) return `${owner}[${JSON.stringify(name)}]`
  return owner === '' ? name : `${owner}.${name}`
}

/** The text is not JSON, or not of a form that can be read item by item. */
export class JsonTextError extends Error {
  override name = 'JsonTextError'
}

/** An item of 64 million characters is an entry of some 150,000 movements, and takes half a gigabyte of memory. */
const itemCharactersMax = 64_000_000

/** Of the file and of its data, which are remembered. The format has 9. */
const membersMax = 1_000

/** The format has 6 levels inside an item. What partners attach to an entry may have more. */
const levelsMax = 100

interface Frame {
  /** Null if what it contains is given out item by item, or skipped. */
  value: Json[] | JsonObject | null
  kind: 'object' | 'list'
  place: string
  /** Of the next value; undefined in a list, and before the first member of an object. */
  key: string | undefined
  index: number
}

export class JsonItems {
  readonly #parse = jsonParser({ streamValues: false })
  readonly #isWanted: (place: string) => boolean
  readonly #frames: Frame[] = []
  /** Levels below a value that is skipped. */
  #skipped = 0
  #charactersHeld = 0
  #found: FileItem[] = []
  /** Members of the file and of `data` whose end was reached. */
  readonly complete = new Set<string>()

  /** @param isWanted whether the items of a place are given out; those of other places are only parsed */
  constructor(isWanted: (place: string) => boolean) {
    this.#isWanted = isWanted
  }

  /** The last item that was begun, for messages about what follows in the text. */
  get path(): string {
    const frame = this.#frames.findLast(({ value }) => value === null)
    if (frame === undefined) return 'the file'
    const { kind, place, key, index } = frame
    return pathOf({ place: placeIn(place, key), index: kind === 'list' ? index : undefined })
  }

  /**
   * The items that end in this part of the text.
   * @throws {JsonTextError} for an item that is too large
   * @throws {Error} for text that is not JSON; `findTextError` tells where
   */
  add(text: string): FileItem[] {
    this.#charactersHeld += text.length
    const tokens = this.#parse(text)
    if (typeof tokens !== 'symbol') for (const token of tokens.values) this.#take(token)
    if (this.#charactersHeld > itemCharactersMax)
      throw new JsonTextError(`${this.path} is larger than ${itemCharactersMax / 1e6} million characters`)
    const found = this.#found
    this.#found = []
    return found
  }

  /** Call after the last part. @throws {JsonTextError} if the text ends before its JSON */
  end(): void {
    if (this.complete.has('')) return
    throw new JsonTextError(`the file ends before its JSON does, within ${this.path}`)
  }

  #take(token: Token): void {
    const { name } = token
    if (name === 'keyValue') {
      if (this.#skipped === 0) this.#name(token.value)
    } else if (name === 'startObject') this.#open('object')
    else if (name === 'startArray') this.#open('list')
    else if (name === 'endObject' || name === 'endArray') this.#close()
    else if (this.#skipped === 0 && 'value' in token)
      this.#put(name === 'numberValue' ? new JsonNumber(token.value) : token.value)
  }

  #name(key: string): void {
    const frame = this.#frames.at(-1)!
    const { value } = frame
    const isKnown =
      value === null ? this.complete.has(memberPath(frame.place, key)) : Object.hasOwn(value, key)
    const owner = value === null ? frame.place || 'the file' : this.path
    if (isKnown) throw new JsonTextError(`${owner} has the member ${JSON.stringify(key)} twice`)
    if (this.complete.size > membersMax)
      throw new JsonTextError(`${owner} has more than ${membersMax} members`)
    frame.key = key
  }

  #open(kind: Frame['kind']): void {
    if (this.#skipped > 0) {
      this.#skipped += 1
      return
    }
    const above = this.#frames.at(-1)
    const place = above === undefined ? '' : placeIn(above.place, above.key)
    // Inside an item everything is kept.
    const isInside = above !== undefined && above.value !== null
    const isContainer = !isInside && isCut(place, kind, above)
    if (!isInside && !isContainer && !this.#isWanted(place)) {
      this.#skipped = 1
      return
    }
    if (this.#frames.length > levelsMax)
      throw new JsonTextError(`${this.path} has more than ${levelsMax} levels`)
    const value = isContainer ? null : kind === 'list' ? [] : {}
    if (!isContainer) this.#add(value)
    this.#frames.push({ value, kind, place, key: undefined, index: 0 })
  }

  #close(): void {
    if (this.#skipped > 0) {
      this.#skipped -= 1
      if (this.#skipped === 0) this.#ended()
      return
    }
    const frame = this.#frames.pop()
    assert(frame !== undefined)
    if (frame.value === null) this.complete.add(frame.place)
    this.#ended(frame.value ?? undefined)
  }

  #put(value: Json): void {
    this.#add(value)
    this.#ended(value)
  }

  /** Adds a value to the item it belongs to. */
  #add(value: Json): void {
    const frame = this.#frames.at(-1)
    if (frame === undefined || frame.value === null) return
    if (Array.isArray(frame.value)) frame.value.push(value)
    // A member of this name would otherwise be the prototype.
    else if (frame.key === '__proto__')
      Object.defineProperty(frame.value, frame.key, { value, enumerable: true, configurable: true })
    else frame.value[frame.key!] = value
  }

  /** After the last token of a value: an item, a part of one, or nothing that is kept. */
  #ended(value?: Json): void {
    const above = this.#frames.at(-1)
    if (above === undefined) {
      if (value !== undefined) this.#found.push({ place: '', index: undefined, value })
      this.complete.add('')
      return
    }
    if (above.value !== null) return
    const place = placeIn(above.place, above.key)
    const index = above.kind === 'list' ? above.index++ : undefined
    if (above.kind === 'object') this.complete.add(place)
    if (value !== undefined && this.#isWanted(place)) this.#found.push({ place, index, value })
    this.#charactersHeld = 0
  }
}

function placeIn(place: string, key: string | undefined): string {
  return key === undefined ? place : memberPath(place, key)
}

/** Whether what the value contains is given out item by item: the file, its data, and the lists in them. */
function isCut(place: string, kind: Frame['kind'], above: Frame | undefined): boolean {
  return kind === 'object'
    ? place === '' || place === 'data'
    : above?.kind === 'object' && above.place === 'data'
}

/**
 * Where text that is not JSON fails.
 * @returns such as `line 1, column 12 "]"`; undefined if it is JSON
 */
export async function findTextError(texts: AsyncIterable<string>): Promise<string | undefined> {
  const verify = jsonVerifier()
  let characters = 0
  for await (const text of texts) {
    try {
      verify(text)
    } catch (error) {
      const { line, pos, offset } = error as { line: number; pos: number; offset: number }
      const at = Math.max(offset - characters, 0)
      return `line ${line}, column ${pos} ${JSON.stringify(text.slice(at, at + 20))}`
    }
    characters += text.length
  }
  return undefined
}
