/**
 * What a subscription may be, and what a patch makes of one: decisions only. The document of a subscription is what a
 * caller writes of it: postUrl, onEvents and accountingFolderId (contract, section 7).
 */
import { isDeepStrictEqual } from 'node:util'
import { applyPatch, type Operation, Pointer } from 'rfc6902'
import { z } from 'zod'
import { idPattern, notAnId, readId } from '../db/id.ts'
import { AppError, invalid } from '../errors.ts'
import { eventKinds, isEventKind } from '../events/kinds.ts'
import type { Owner, Subscription } from './subscriptions.sql.ts'
import { secureUrlPattern, type TargetRules, urlCharactersMax, vetUrl } from './target.ts'

const onEventsMax = 50
/** Of a patch. There are three fields; each operation may copy the longest of them. */
const operationsMax = 100

const kind = z
  .string({ error: 'must be the name of a kind of event' })
  .superRefine((name, context) => {
    if (isEventKind(name)) return
    const message = `${JSON.stringify(name.slice(0, 64))} is no kind of event; the kinds are ${eventKinds.join(', ')}`
    context.addIssue({ code: 'custom', message })
  })
  .meta({ enum: eventKinds })

/** As a string or a number; comes out without leading zeros. */
const folderId = z
  .union(
    [
      z.string().regex(idPattern, notAnId),
      // As it checks by itself; a `max` of the same would tell the mistake twice.
      z.int(notAnId).min(0, notAnId).meta({ maximum: Number.MAX_SAFE_INTEGER }),
    ],
    { error: notAnId },
  )
  .transform((given) => readId(String(given))!)

/** The document as a caller sends it, and its name for what is wrong with it as a whole. */
export function subscriptionDocument(rules: TargetRules) {
  const postUrl = z.string({ error: requiredOr('must be an address') }).superRefine((text, context) => {
    const message = vetUrl(text, rules)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })
  return z.strictObject(
    {
      postUrl: postUrl.meta({
        description: 'Absolute, https, without a user name, to a public address and not to port 0',
        format: 'uri',
        pattern: secureUrlPattern,
        maxLength: urlCharactersMax,
        example: 'https://example.com/ledger-events',
      }),
      onEvents: z
        .array(kind, { error: requiredOr('must be an array of kinds of events') })
        .min(1, `must name 1 to ${onEventsMax} kinds of events`)
        .transform((names) => [...new Set(names)])
        .refine((names) => names.length <= onEventsMax, `must name 1 to ${onEventsMax} kinds of events`)
        .meta({
          description: 'Kinds of events; which operations of them cannot be chosen',
          example: ['cloudDocument'],
        }),
      accountingFolderId: z
        .array(folderId, { error: requiredOr('must be an array of ids') })
        .transform((ids) => [...new Set(ids)])
        .optional()
        .meta({
          description: 'Folders; none: for a firm token the whole schema, for a company token its folder',
        }),
    },
    { error: ({ code }) => (code === 'invalid_type' ? 'must be an object' : undefined) },
  )
}

function requiredOr(message: string): z.core.$ZodErrorMap {
  return ({ input }) => (input === undefined ? 'is required' : message)
}

export type SubscriptionDocument = z.output<ReturnType<typeof subscriptionDocument>>

/** What the caller wrote, or would write to get this subscription. */
export function documentOf({ postUrl, onEvents, folderIds }: Subscription): SubscriptionDocument {
  return { postUrl, onEvents, accountingFolderId: folderIds }
}

/**
 * The folders a caller's subscription is tied to: a company token's to its own, a firm token's to those it names. That
 * these are of its firm has still to be found out.
 * @throws {AppError} ERR-FORBIDDEN-ACCESS
 */
export function foldersFor(
  { folderId: own }: Owner,
  { accountingFolderId = [] }: SubscriptionDocument,
): string[] {
  if (own === null) return accountingFolderId
  if (accountingFolderId.some((id) => id !== own)) throw new AppError('ERR-FORBIDDEN-ACCESS')
  return [own]
}

const notAPointer = 'must be /postUrl, /onEvents, /accountingFolderId or an item of these arrays'

/** `/onEvents`, or one of its items; `-` is the place behind the last one, which only what adds can mean. */
const pointer = (item: string) =>
  z
    .string({ error: requiredOr(notAPointer) })
    .regex(new RegExp(`^/(postUrl|(onEvents|accountingFolderId)(/(0|[1-9]\\d{0,5}${item}))?)$`), notAPointer)
const addable = pointer('|-')
const existing = pointer('')
const value = z.union([z.string(), z.number(), z.array(z.union([z.string(), z.number()]))], {
  error: requiredOr('must be a text, a number or an array of these'),
})
const given = z.unknown().refine((json) => json !== undefined, 'is required')

/**
 * JSON Patch (RFC 6902) on the three fields. Values are flat, and what is moved or copied stays on its level, so that no
 * sequence of copies can double an array again and again.
 */
export const patchDocument = z
  .array(
    z
      .discriminatedUnion(
        'op',
        [
          z.object({ op: z.literal('add'), path: addable, value }),
          z.object({ op: z.literal('replace'), path: existing, value }),
          z.object({ op: z.literal('remove'), path: existing }),
          z.object({ op: z.literal('move'), from: existing, path: addable }),
          z.object({ op: z.literal('copy'), from: existing, path: addable }),
          z.object({ op: z.literal('test'), path: existing, value: given }),
        ],
        { error: 'must be an operation: add, remove, replace, move, copy or test' },
      )
      .refine((step) => !('from' in step) || isItem(step.from) === isItem(step.path), {
        path: ['path'],
        error: 'must be an item where `from` is one, and a field where it is one',
      })
      .refine(
        (step) =>
          !('value' in step) || step.op === 'test' || !isItem(step.path) || !Array.isArray(step.value),
        {
          path: ['value'],
          error: 'must be a text or a number for an item',
        },
      ),
    { error: 'must be an array of operations' },
  )
  .max(operationsMax, `must hold at most ${operationsMax} operations`)
  .meta({
    description:
      'JSON Patch (RFC 6902) on /postUrl, /onEvents and /accountingFolderId. The value of an item is a text or a number, and ' +
      'what is moved or copied stays an item or a field. What comes out has to be what POST takes',
  })

export type Patch = z.output<typeof patchDocument>
type Step = Patch[number]

function isItem(path: string): boolean {
  return path.lastIndexOf('/') > 0
}

/**
 * The document with all operations applied, in their order; it may be none of a subscription any more.
 * @throws {AppError} ERR-PATCH-TEST-FAILED, or ERR-VALIDATION where an operation names what is not there
 */
export function patched(document: SubscriptionDocument, patch: Patch): unknown {
  const result = structuredClone(document)
  for (const [index, step] of patch.entries())
    switch (step.op) {
      case 'test':
        // Not the library's test, which takes time and stack in the product of the lengths of two arrays.
        if (!isDeepStrictEqual(Pointer.fromJSON(step.path).get(result), step.value))
          throw new AppError('ERR-PATCH-TEST-FAILED', {
            message: `Operation ${index} of the patch, a test of ${step.path}, failed; nothing was changed`,
          })
        break
      case 'move':
      case 'copy': {
        // In steps, as the RFC explains them: the library lets both reach beyond the end of an array.
        const moved: unknown = Pointer.fromJSON(step.from).get(result)
        if (moved === undefined) throw invalid(`${index}.from`, 'names nothing that is there')
        if (step.op === 'move') apply(result, index, { op: 'remove', path: step.from })
        apply(result, index, { op: 'add', path: step.path, value: moved })
        break
      }
      default:
        apply(result, index, step)
    }
  return result
}

function apply(
  document: unknown,
  index: number,
  step: Exclude<Step, { op: 'test' | 'move' | 'copy' }> | Operation,
) {
  const [error] = applyPatch(document, [step])
  if (error) throw invalid(`${index}.path`, 'names nothing that is there')
}
