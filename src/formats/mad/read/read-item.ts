/** Checks an item of a MAD file against its schema. */
import type { z } from 'zod'
import type { Json, JsonObject } from '../../items/any-json.ts'
import { JsonNumber } from '../../minor-units.ts'
import { type FileItem, memberPath, pathOf } from './json-items.ts'

/**
 * The item; undefined if it has problems, which are added. Members that the schema does not have are counted and left
 * out.
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

/** @param read what the schema took of it @param path a stack: nearly no member is unknown */
function countUnknown(
  given: Json,
  read: unknown,
  item: string,
  path: (string | number)[],
  problems: FileProblems,
): void {
  // Kept whole, such as what a partner attached.
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

/** The check stops at this many problems: enough to see a pattern, few enough to read. */
export const problemsMax = 20

const valueCharactersMax = 60
/** Kinds of members that are not read, and characters of their paths; a file of another program may have any number. */
const unknownMax = 1000
const unknownCharactersMax = 300

export class FileProblems {
  /** Such as `data.accounts[3].number "x": an account number is expected`. */
  readonly lines: string[] = []
  /** How often members occur that are not of the format, by their path without positions. */
  unknown = new Map<string, number>()

  get isFull(): boolean {
    return this.lines.length >= problemsMax
  }

  /** @param path such as `data.entries[12].date` @param value as it is in the file */
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
