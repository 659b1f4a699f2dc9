/**
 * Every kind of event, its operations, and the data of each (docs/spec/webhooks.md#events). An id is a string of
 * digits, as everywhere else in this API, except that of `connector`, which is a number.
 */
import { z } from 'zod'

/** What happened to the subject of an event (docs/spec/webhooks.md#notification). */
export type Operation = 'CREATE' | 'UPDATE' | 'DELETE' | 'VOID'

const text = z.string().min(1)
const identified = z.strictObject({ id: text }).meta({ id: 'IdentifiedData' })
const connector = z
  .strictObject({
    id: z.int().positive(),
    /** Code of the third party that owns the token. */
    code: text,
    userId: z.int().positive().optional(),
  })
  .meta({ id: 'ConnectorData' })
/** The type is given for the description in the API's document: the library cannot describe arbitrary JSON. */
const state = z.record(z.string(), z.json()).meta({ type: 'object' }).optional()
const changed = z
  .strictObject({ id: text, previousState: state, currentState: state })
  .meta({ id: 'ChangedData' })
const lettering = z
  .strictObject({
    /** Id of the first movement of the lettering. */
    id: text,
    /** Code of a payment mode, as in exports; empty if none is known. */
    paymentType: z.string(),
    /** Invoice number of that movement. */
    piece1: z.string().optional(),
  })
  .meta({ id: 'LetteringData' })
const cloudDocument = z
  .strictObject({
    /** Id of the export: `export_...` */
    id: text,
    status: z.enum(['completed', 'rejected']).meta({ id: 'CloudDocumentStatus' }),
    reason: text.optional(),
  })
  .meta({ id: 'CloudDocumentData' })
const document = z
  .strictObject({
    id: text,
    kind: z.enum(['AF', 'PF', 'DB', 'ED', 'MF']).meta({ id: 'DocumentKind' }),
    name: text,
  })
  .meta({ id: 'DocumentData' })
const thirdParty = z.strictObject({ code: text }).meta({ id: 'ThirdPartyData' })
const adminMessage = z
  .strictObject({
    event: text,
    socketMessage: z
      .strictObject({ id: z.int(), title: z.string(), message: z.string() })
      .meta({ id: 'SocketMessage' }),
    receivers: z.array(text),
  })
  .meta({ id: 'AdminMessageData' })

/** For each kind, the schema of the data of each operation; in the order of docs/spec/webhooks.md#events. */
export const kinds = {
  connector: { CREATE: connector, UPDATE: connector, DELETE: connector },
  accountingFolder: { CREATE: identified, UPDATE: changed },
  exercice: { CREATE: identified, UPDATE: changed, DELETE: identified },
  accountingLineEntry: { CREATE: identified },
  accountingEntryLettering: { CREATE: lettering, DELETE: lettering },
  cloudDocument: { CREATE: cloudDocument, UPDATE: cloudDocument },
  document: { CREATE: document },
  portfolio: { CREATE: identified, DELETE: identified },
  thirdParty: { CREATE: thirdParty, UPDATE: thirdParty, DELETE: thirdParty },
  adminMessage: { VOID: adminMessage },
  ledger: { UPDATE: z.strictObject({ cursor: text }).meta({ id: 'LedgerData' }) },
  visitedPage: { VOID: z.strictObject({ path: text }).meta({ id: 'VisitedPageData' }) },
  yousignSignature: { VOID: identified },
  taxReturnSent: { VOID: z.strictObject({ idDepot: text }).meta({ id: 'TaxReturnSentData' }) },
} as const satisfies Record<string, Partial<Record<Operation, z.ZodType>>>

type Kinds = typeof kinds
export type EventKind = keyof Kinds

export const eventKinds = Object.keys(kinds) as EventKind[]

export function isEventKind(name: string): name is EventKind {
  return Object.hasOwn(kinds, name)
}

/** A kind, one of its operations, and the data of that operation. */
export type EventPayload = {
  [K in EventKind]: {
    [O in keyof Kinds[K]]: {
      name: K
      operation: O
      data: Kinds[K][O] extends z.ZodType ? z.input<Kinds[K][O]> : never
    }
  }[keyof Kinds[K]]
}[EventKind]

/**
 * Checks an event and returns it with its type.
 * @throws {Error} that names every problem and the values allowed instead
 */
export function checkEventPayload(event: { name: string; operation: string; data: unknown }): EventPayload {
  const { name, operation, data } = event
  if (!isEventKind(name))
    throw new Error(`There is no kind of event ${name}; the kinds are ${eventKinds.join(', ')}`)
  const operations: Partial<Record<string, z.ZodType>> = kinds[name]
  const schema = Object.hasOwn(operations, operation) ? operations[operation] : undefined
  if (!schema)
    throw new Error(
      `${name} has the operations ${Object.keys(operations).join(', ')}, not ${operation || 'none'}`,
    )
  const checked = schema.safeParse(data)
  if (checked.success) return event as EventPayload
  const problems = checked.error.issues.map(
    ({ path, message }) => `${['data', ...path].join('.')}: ${message}`,
  )
  throw new Error(`The data of ${name} ${operation} are invalid: ${problems.join('; ')}`)
}
