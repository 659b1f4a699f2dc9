/** Checks an item of a MAD file against its schema. */
import type { z } from 'zod'
import type { Json, JsonObject } from '../../items/any-json.ts'
import { JsonNumber } from '../../minor-units.ts'
import { type FileItem, pathOf } from './json-items.ts'
import { type FileProblems, pathWithin } from './problems.ts'

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
