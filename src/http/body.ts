/** JSON bodies of requests: read if they are small enough and of the right type, then checked by a schema. */
import type { Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { z } from 'zod'
import type { Issue } from '../../packages/contract/src/error-codes.ts'
import { limits } from '../config.ts'
import { AppError, invalid } from '../errors.ts'
import { bodyBytesMaxOf } from './listener.ts'
import type { Edge } from './route.ts'

/**
 * Counts the bytes of the body, also of a chunked one. The listener has already refused a Content-Length that is too
 * large.
 */
const limitOf = (maxSize: number) =>
  bodyLimit({
    maxSize,
    onError: () => {
      // The rest of the body is not read, so the connection cannot be reused.
      throw new AppError('ERR-PAYLOAD-TOO-LARGE', { headers: { Connection: 'close' } })
    },
  })

/**
 * Reads a body. Without Content-Type it is taken as JSON (docs/spec/interface.md#size-and-time-limits).
 * @param mediaTypes the media types that the route accepts
 * @returns a function that parses the body, and throws ERR-VALIDATION if it is not JSON
 * @throws {AppError} ERR-UNSUPPORTED-MEDIA-TYPE, ERR-PAYLOAD-TOO-LARGE
 */
export async function readBody(
  c: Context<Edge>,
  mediaTypes: readonly [string, ...string[]],
): Promise<() => unknown> {
  const stated = c.req.header('content-type')?.trim() || mediaTypes[0]
  const [type = '', ...parameters] = stated.toLowerCase().split(';')
  const encoding = c.req.header('content-encoding') ?? 'identity'
  const isUtf8 = parameters.every((parameter) => !/^\s*charset=(?!"?utf-8"?\s*$)/.test(parameter))
  if (!mediaTypes.includes(type.trim()) || !isUtf8 || encoding.toLowerCase() !== 'identity')
    throw new AppError('ERR-UNSUPPORTED-MEDIA-TYPE', {
      message: `This route accepts ${mediaTypes.join(' or ')}, uncompressed and in UTF-8`,
      // RFC 5789, section 2.2.
      headers: c.req.method === 'PATCH' ? { 'Accept-Patch': mediaTypes.join(', ') } : {},
    })
  await limitOf(bodyBytesMaxOf(c.req.path))(c, async () => {})
  const bytes = await c.req.arrayBuffer()
  return () => {
    try {
      return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    } catch (error) {
      // A TypeError says that the body is not UTF-8.
      if (error instanceof SyntaxError || error instanceof TypeError)
        throw invalid('body', 'must be JSON in UTF-8')
      throw error
    }
  }
}

/**
 * Returns the body as parsed by the schema.
 * @throws {AppError} ERR-VALIDATION with the problems, each named by its path in the body (`onEvents.2`)
 */
export function checkBody<Schema extends z.ZodType>(schema: Schema, body: unknown): z.output<Schema> {
  const checked = schema.safeParse(body, { error: inPlainWords })
  if (checked.success) return checked.data
  const issues = checked.error.issues.flatMap(issuesOf)
  const { issuesMax } = limits
  const message = `The request has ${issues.length} mistakes; details.issues has the first ${issuesMax}`
  throw new AppError('ERR-VALIDATION', {
    issues: issues.slice(0, issuesMax),
    ...(issues.length > issuesMax ? { message } : {}),
  })
}

/** Messages for mistakes for which a schema states none. */
const inPlainWords: z.core.$ZodErrorMap = (issue) => {
  if (issue.code === 'invalid_type')
    return issue.input === undefined ? 'is required' : `must be of the type ${issue.expected}`
  if (issue.code === 'too_small' && issue.origin === 'array')
    return `must have ${issue.minimum} or more items`
  if (issue.code === 'too_big' && issue.origin === 'array') return `must have at most ${issue.maximum} items`
  return undefined
}

function issuesOf(issue: z.core.$ZodIssue): Issue[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      parameter: [...issue.path, key].join('.'),
      message: 'is not a known field',
    }))
  return [{ parameter: issue.path.join('.') || 'body', message: issue.message }]
}
