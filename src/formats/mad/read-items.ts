/**
 * Cuts the text of a MAD file into its items: `metadata`, `data.accountingFolder`, and each item of the lists of
 * `data`. Only one item is in memory at a time, whatever the order of the members. stream-json parses the text; numbers
 * stay digits.
 */
import { strict as assert } from 'node:assert'
import { jsonParser, type Token } from 'stream-json/core/parser.js'
import { jsonVerifier } from 'stream-json/core/utils/verifier.js'
import type { z } from 'zod'
import type { Json, JsonObject } from '../items/values.ts'
import { JsonNumber } from '../minor-units.ts'

/** One item of the file. */
export interface FileItem {
  /**
   * The path of the item without its position, such as `data.accounts` or `data["a.b"]`. Empty for the whole file if it
   * is not an object.
   */
  place: string
  /** The position in a list, from 0. */
  index: number | undefined
  value: Json
}

/** The path of an item, such as `data.accounts[3]`. */
export function pathOf({ place, index }: Omit<FileItem, 'value'>): string {
  return index === undefined ? place || 'the file' : `${place}[${index}]`
}

/** The path of a member, such as `data.accounts`. A name that is not a word is written in brackets: `data["a.b"]`. */
function memberPath(owner: string, name: string): string {
  if (!/^\w+$/.test(name)) return `${owner}[${JSON.stringify(name)}]`
  return owner === '' ? name : `${owner}.${name}`
}

/** Thrown if the text is not JSON, or cannot be read item by item. */
export class JsonTextError extends Error {
  override name = 'JsonTextError'
}

/**
 * The most characters of an item: an entry of about 150,000 movements has this size, and takes half a gigabyte of
 * memory.
 */
const itemCharactersMax = 64_000_000

/** The most members of the file and of its data together. The path of each is kept. The format has 9 members. */
const membersMax = 1_000

/** The most levels inside an item. The format has 6; what partners attach to an entry may have more. */
const levelsMax = 100

interface Frame {
  /** Null if the content of the value is returned, or skipped, item by item. */
  value: Json[] | JsonObject | null
  kind: 'object' | 'list'
  place: string
  /** The name of the next value. Undefined in a list, and before the first member of an object. */
  key: string | undefined
  index: number
}

export class JsonItems {
  readonly #parse = jsonParser({ streamValues: false })
  readonly #isWanted: (place: string) => boolean
  readonly #frames: Frame[] = []
  /** The number of open levels of a skipped value, including the value itself; 0 if nothing is being skipped. */
  #skipped = 0
  #charactersHeld = 0
  #found: FileItem[] = []
  /** Members of the file and of `data` that were read to their end. */
  readonly complete = new Set<string>()

  /** @param isWanted whether to return the items of a place; items of other places are only parsed */
  constructor(isWanted: (place: string) => boolean) {
    this.#isWanted = isWanted
  }

  /** The path of the last item that was begun, for messages about the text after it. */
  get path(): string {
    const frame = this.#frames.findLast(({ value }) => value === null)
    if (frame === undefined) return 'the file'
    const { kind, place, key, index } = frame
    return pathOf({ place: placeIn(place, key), index: kind === 'list' ? index : undefined })
  }

  /**
   * Reads on, and returns the items that end in this part of the text.
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
    // Inside an item, everything is kept.
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
    // An assignment would set the prototype instead of a member of this name.
    else if (frame.key === '__proto__')
      Object.defineProperty(frame.value, frame.key, { value, enumerable: true, configurable: true })
    else frame.value[frame.key!] = value
  }

  /** Handles the end of a value, which is an item, a part of an item, or a value that is not kept. */
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

/**
 * Whether the content of a value is returned item by item. This holds for the file, its data, and the lists in the
 * data.
 */
function isCut(place: string, kind: Frame['kind'], above: Frame | undefined): boolean {
  return kind === 'object'
    ? place === '' || place === 'data'
    : above?.kind === 'object' && above.place === 'data'
}

/**
 * Finds where text stops being JSON.
 * @returns such as `line 1, column 12 "]"`; undefined if the text is JSON
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

/**
 * Checks an item of a MAD file against its schema. Returns the item; undefined if it has problems, which are added to
 * `problems`. Members that the schema does not have are counted and left out.
 */
export function readItem<Schema extends z.ZodType>(
  schema: Schema,
  item: FileItem,
  problems: FileProblems,
): z.output<Schema> | undefined {
  const path = pathOf(item)
  const { success, data, error } = schema.safeParse(item.value, { reportInput: true })
  if (success) {
    countUnknown(item.value, data, path, [], problems)
    return data
  }
  for (const { path: within, input, message } of error.issues)
    problems.add(pathWithin(path, within), input, input === undefined ? `missing: ${message}` : message)
  return undefined
}

/**
 * @param read the part of `given` that the schema took @param path the path of `given` in the item, as a stack: nearly
 *   all members are known and need no text of their path
 */
function countUnknown(
  given: Json,
  read: unknown,
  item: string,
  path: (string | number)[],
  problems: FileProblems,
): void {
  // The schema took the whole value unchanged, such as data that a partner attached.
  if (given === read) return
  if (Array.isArray(given)) {
    const items = read as unknown[]
    for (let i = 0; i < given.length; i++) {
      path.push(i)
      countUnknown(given[i]!, items[i], item, path, problems)
      path.pop()
    }
  } else if (isObject(given))
    for (const name of Object.keys(given)) {
      path.push(name)
      if (!Object.hasOwn(read as object, name)) problems.addUnknown(pathWithin(item, path))
      else countUnknown(given[name]!, (read as JsonObject)[name], item, path, problems)
      path.pop()
    }
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !(value instanceof JsonNumber)
}

/** The check stops after this many problems: enough to see a pattern, few enough to read. */
export const problemsMax = 20

const valueCharactersMax = 60
/**
 * Limits on the unread members that are counted: how many different paths, and how many characters of each path are
 * kept. A file of another program may have any number of such members.
 */
const unknownMax = 1000
const unknownCharactersMax = 300

export class FileProblems {
  /** One text per problem, such as `data.accounts[3].number "x": an account number is expected`. */
  readonly lines: string[] = []
  /** The number of occurrences of each member that is not in the format, by its path without positions. */
  unknown = new Map<string, number>()

  get isFull(): boolean {
    return this.lines.length >= problemsMax
  }

  /** @param path such as `data.entries[12].date` @param value the value in the file */
  add(path: string, value: unknown, message: string): void {
    if (this.isFull) return
    const text = shown(value)
    this.lines.push(`${path}${text && ` "${text}"`}: ${message}`)
  }

  addUnknown(path: string): void {
    const kind = path.replaceAll(/\[\d+\]/g, '[]').slice(0, unknownCharactersMax)
    if (this.unknown.has(kind) || this.unknown.size < unknownMax)
      this.unknown.set(kind, (this.unknown.get(kind) ?? 0) + 1)
  }
}

/** The path of a member within an item. */
function pathWithin(item: string, path: readonly PropertyKey[]): string {
  return path.reduce<string>((before, part) => {
    if (typeof part === 'number') return `${before}[${part}]`
    return memberPath(before, shortened(String(part)))
  }, item)
}

function shown(value: unknown): string {
  if (value === undefined) return ''
  if (value instanceof JsonNumber) return shortened(value.text)
  if (typeof value === 'string') return shortened(value)
  if (Array.isArray(value)) return '[...]'
  return typeof value === 'object' && value !== null ? '{...}' : String(value)
}

function shortened(text: string): string {
  return text.length > valueCharactersMax ? `${text.slice(0, valueCharactersMax)}...` : text
}
