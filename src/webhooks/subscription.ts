/**
 * Validates subscriptions and applies patches. Pure. The document of a subscription consists of the fields that a
 * caller writes: postUrl, onEvents and accountingFolderId (docs/spec/webhooks.md#subscriptions).
 *
 * A patch turns one document into another. The results of POST, PUT and PATCH are checked against the same schema, so a
 * patch cannot produce a document that a POST would refuse.
 */
import { isDeepStrictEqual } from 'node:util'
import { applyPatch, type Operation, Pointer } from 'rfc6902'
import { z } from 'zod'
import { idPattern, notAnId, readId } from '../db/literal.ts'
import { AppError, invalid } from '../errors.ts'
import { eventKinds, isEventKind } from '../events/kinds.ts'
import type { Owner, Subscription } from './subscriptions.sql.ts'
import { secureUrlPattern, type TargetRules, urlCharactersMax, vetUrl } from './target.ts'

const onEventsMax = 50
/** Most operations in a patch. The document has only three fields, and each operation may copy the longest of them. */
const operationsMax = 100

const kind = z
  .string({ error: 'must be the name of a kind of event' })
  .superRefine((name, context) => {
    if (isEventKind(name)) return
    const message = `${JSON.stringify(name.slice(0, 64))} is not a kind of event; the kinds are ${eventKinds.join(', ')}`
    context.addIssue({ code: 'custom', message })
  })
  .meta({ id: 'EventKind', type: 'string', enum: eventKinds })

/** Accepts a string or a number. Returns it without leading zeros. */
const folderId = z
  .union(
    [
      z.string().regex(idPattern, notAnId),
      // z.int() itself refuses larger numbers. A `max` of the same value would report the mistake twice.
      z.int(notAnId).min(0, notAnId).meta({ maximum: Number.MAX_SAFE_INTEGER }),
    ],
    { error: notAnId },
  )
  .transform((given) => readId(String(given))!)
  .meta({ id: 'FolderId' })

/**
 * Returns the schema of the document that a caller sends. It has its own message for a document that is not an object.
 */
export function subscriptionDocument(rules: TargetRules) {
  const required = 'is required; null: nothing is posted, and events are read by number'
  const postUrl = z
    .string({ error: requiredOr('must be an address', required) })
    .superRefine((text, context) => {
      const message = vetUrl(text, rules)
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })
  return z.strictObject(
    {
      postUrl: postUrl
        .meta({
          description: 'Absolute, https, without a user name, to a public address and not to port 0',
          format: 'uri',
          pattern: secureUrlPattern,
          maxLength: urlCharactersMax,
          example: 'https://example.com/ledger-events',
        })
        .nullable()
        .meta({
          description: 'Where events are posted. Null: nowhere; they are read at /api/v1/webhook/{id}/events',
        }),
      onEvents: z
        .array(kind, { error: requiredOr('must be an array of kinds of events') })
        .min(1, `must name 1 to ${onEventsMax} kinds of events`)
        .transform((names) => [...new Set(names)])
        .refine((names) => names.length <= onEventsMax, `must name 1 to ${onEventsMax} kinds of events`)
        .meta({
          description: 'Kinds of events. All operations of a kind are sent',
          example: ['cloudDocument'],
        }),
      accountingFolderId: z
        .array(folderId, { error: requiredOr('must be an array of ids') })
        .transform((ids) => [...new Set(ids)])
        .optional()
        .meta({
          description:
            'Folders. If empty: the firm for a firm token, with folders that come later; its own folder for a company token',
        }),
    },
    { error: ({ code }) => (code === 'invalid_type' ? 'must be an object' : undefined) },
  )
}

function requiredOr(message: string, required = 'is required'): z.core.$ZodErrorMap {
  return ({ input }) => (input === undefined ? required : message)
}

/**
 * A merge patch (RFC 7396): it replaces each field that it names. Only `postUrl` may be null, because no field can be
 * removed.
 */
export function mergePatchDocument(rules: TargetRules) {
  return subscriptionDocument(rules).partial()
}

export type SubscriptionDocument = z.output<ReturnType<typeof subscriptionDocument>>

/** The document that describes this subscription. */
export function documentOf({ postUrl, onEvents, folderIds }: Subscription): SubscriptionDocument {
  return { postUrl, onEvents, accountingFolderId: folderIds }
}

/**
 * Returns the folders of a caller's subscription: a company token's own folder, or those that a firm token names. The
 * caller must still check that these belong to its firm.
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

const notAPointer =
  'must be /postUrl, /onEvents, /accountingFolderId or an item of these arrays, or /position where it is set'

/** The only value to which `/position` can be set. */
const latest = 'latest'

/**
 * The path of a field or of an item: `/onEvents`, `/onEvents/0`. Only an operation that adds may name `-`, the position
 * after the last item.
 */
const pointer = (item: string, position = '') =>
  z
    .string({ error: requiredOr(notAPointer) })
    .regex(
      new RegExp(`^/(postUrl${position}|(onEvents|accountingFolderId)(/(0|[1-9]\\d{0,5}${item}))?)$`),
      notAPointer,
    )
const addable = pointer('|-')
const existing = pointer('')
const settable = '|position'
const isScalar = (json: unknown) => typeof json === 'string' || typeof json === 'number'
/** Not declared as a union: from a union with an array, generators make clients that do not compile. */
const value = z
  .unknown()
  .refine((json) => json === null || [json].flat().every(isScalar), {
    error: requiredOr('must be a string, a number, null or an array'),
  })
  .meta({ description: 'A text, a number, null, or an array of texts and numbers' })
const given = z.unknown().refine((json) => json !== undefined, 'is required')

/**
 * JSON Patch (RFC 6902) on the three fields. Values are flat, and a moved or copied value stays on its level. So a
 * sequence of copies cannot double an array again and again.
 */
export const patchDocument = z
  .array(
    z
      .discriminatedUnion(
        'op',
        [
          z.object({ op: z.literal('add'), path: pointer('|-', settable), value }).meta({ id: 'AddStep' }),
          z
            .object({ op: z.literal('replace'), path: pointer('', settable), value })
            .meta({ id: 'ReplaceStep' }),
          z.object({ op: z.literal('remove'), path: existing }).meta({ id: 'RemoveStep' }),
          z.object({ op: z.literal('move'), from: existing, path: addable }).meta({ id: 'MoveStep' }),
          z.object({ op: z.literal('copy'), from: existing, path: addable }).meta({ id: 'CopyStep' }),
          z.object({ op: z.literal('test'), path: existing, value: given }).meta({ id: 'TestStep' }),
        ],
        { error: 'must be an operation: add, remove, replace, move, copy or test' },
      )
      .refine((step) => !('from' in step) || isItem(step.from) === isItem(step.path), {
        path: ['path'],
        error: 'must be an item if `from` is an item, and a field if `from` is a field',
      })
      .refine(
        (step) =>
          !('value' in step) ||
          step.op === 'test' ||
          !isItem(step.path) ||
          ['string', 'number'].includes(typeof step.value),
        {
          path: ['value'],
          error: 'must be a string or a number for an item',
        },
      )
      .refine((step) => !setsPosition(step) || !('value' in step) || step.value === latest, {
        path: ['value'],
        error: `must be "${latest}" for /position`,
      })
      .meta({ id: 'PatchStep' }),
    { error: 'must be an array of operations' },
  )
  .max(operationsMax, `must hold at most ${operationsMax} operations`)
  .meta({
    id: 'SubscriptionPatch',
    description:
      'JSON Patch (RFC 6902) on /postUrl, /onEvents and /accountingFolderId. The value of an item is a string or a number, and ' +
      'a moved or copied value stays an item or a field. The result must be valid for POST. To add or replace /position with ' +
      '"latest" skips what was not delivered yet',
  })

type Patch = z.output<typeof patchDocument>

function isItem(path: string): boolean {
  return path.lastIndexOf('/') > 0
}

function setsPosition({ path }: { path: string }): boolean {
  return path === '/position'
}

/** Whether the patch skips the events that were not delivered yet. */
export function skipsToLatest(patch: Patch): boolean {
  return patch.some(setsPosition)
}

/**
 * Applies all operations in order, except those on the position, which is not a field of the document. The result may
 * be an invalid document.
 * @throws {AppError} ERR-PATCH-TEST-FAILED, or ERR-VALIDATION if an operation names a missing value
 */
export function patched(document: SubscriptionDocument, patch: Patch): unknown {
  const result = structuredClone(document)
  for (const [index, step] of patch.entries()) {
    if (setsPosition(step)) continue
    switch (step.op) {
      case 'test':
        // The library's own test is not used: its time and stack grow with the product of the lengths of two arrays.
        if (!isDeepStrictEqual(Pointer.fromJSON(step.path).get(result), step.value))
          throw new AppError('ERR-PATCH-TEST-FAILED', {
            message: `Operation ${index} of the patch, a test of ${step.path}, failed; nothing was changed`,
          })
        break
      case 'move':
      case 'copy': {
        // Done in two steps, as the RFC defines a move and a copy: the library lets both reach beyond the end of an
        // array.
        const moved: unknown = Pointer.fromJSON(step.from).get(result)
        if (moved === undefined) throw invalid(`${index}.from`, 'names a value that does not exist')
        if (step.op === 'move') apply(result, index, { op: 'remove', path: step.from })
        apply(result, index, { op: 'add', path: step.path, value: moved })
        break
      }
      default:
        apply(result, index, step)
    }
  }
  return result
}

function apply(document: unknown, index: number, step: Operation): void {
  const [error] = applyPatch(document, [step])
  if (error) throw invalid(`${index}.path`, 'names a value that does not exist')
}
