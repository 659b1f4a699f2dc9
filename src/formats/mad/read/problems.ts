/** Problems of a MAD file, described so that its author can find and correct them. */

import { JsonNumber } from '../../minor-units.ts'
import { memberPath } from './json-items.ts'

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
export function pathWithin(item: string, path: readonly PropertyKey[]): string {
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
