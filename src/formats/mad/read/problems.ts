/** Problems of a MAD file, described so that its author can find and correct them. */

import { JsonNumber } from '../../minor-units.ts'
import { memberPath } from './json-items.ts'

/** The check stops at this many problems: enough to see a pattern, few enough to read. */
export const problemsMax = 20

const valueCharactersMax = 60
/** Kinds of members that are not read, and characters of their paths; a file of another program may have any number. */
const unknownMax = 1000
const unknownCharactersMax = 300

export type Path = readonly PropertyKey[]

export class FileProblems {
  readonly found: { path: string; value: string; message: string }[] = []
  /** How often members occur that are not of the format, by their path without positions. */
  unknown = new Map<string, number>()

  get isFull(): boolean {
    return this.found.length >= problemsMax
  }

  /** @param item such as `data.entries[12]` @param value as it is in the file */
  add(item: string, path: Path, value: unknown, message: string): void {
    if (!this.isFull) this.found.push({ path: joined(item, path), value: shown(value), message })
  }

  addUnknown(item: string, path: Path): void {
    const kind = joined(item, path)
      .replaceAll(/\[\d+\]/g, '[]')
      .slice(0, unknownCharactersMax)
    if (this.unknown.has(kind) || this.unknown.size < unknownMax)
      this.unknown.set(kind, (this.unknown.get(kind) ?? 0) + 1)
  }
}

function joined(item: string, path: Path): string {
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
