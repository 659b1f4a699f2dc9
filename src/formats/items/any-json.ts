/** Any JSON that the database can store. Partners attach it to entries. */
import { z } from 'zod'
import { JsonNumber } from '../minor-units.ts'
import { text } from './values.ts'

export type JsonObject = { [member: string]: Json }
export type Json = null | boolean | string | JsonNumber | Json[] | JsonObject

/** jsonb stores numbers exactly, written out in full: `1e9` takes ten digits. */
export const anyJson = z.unknown().superRefine((value, context) => {
  const problem = problemOfJson(value as Json)
  if (problem !== undefined) context.addIssue({ code: 'custom', ...problem })
})

interface JsonProblem {
  path: (string | number)[]
  message: string
  input: unknown
}

/** The first part of a value that the database cannot store. */
function problemOfJson(value: Json, path: (string | number)[] = []): JsonProblem | undefined {
  if (value instanceof JsonNumber)
    return /^-?\d{1,300}(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?$/.test(value.text)
      ? undefined
      : {
          path,
          message: 'a number of at most 300 digits and an exponent of 3 is expected',
          input: value.text,
        }
  if (typeof value === 'string') {
    const message = text.safeParse(value).error?.issues[0]?.message
    return message === undefined ? undefined : { path, message, input: value }
  }
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const below = [...path, Array.isArray(value) ? Number(key) : key]
    const problem = problemOfJson(key, below) ?? problemOfJson(inner, below)
    if (problem !== undefined) return problem
  }
  return undefined
}
