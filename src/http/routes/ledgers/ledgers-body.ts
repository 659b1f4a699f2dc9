/** The bodies of requests for many ledgers (docs/spec/ledgers.md#request). */
import { z } from '@hono/zod-openapi'
import { wholeTables } from '../../../../packages/contract/src/ledger-tables.ts'
import { idPattern, notAnId, readId } from '../../../db/literal.ts'
import type { AskedLedger } from '../../../exports/run/ledgers/task.ts'
import { type EntryRange, mergedRanges } from '../../../ledger/changes/entry-ranges.ts'
import { idSchema, rangeSchema } from '../../query.ts'
import { cursorPattern } from '../movements-query.ts'

const ledgersMax = 10_000
const rangesMax = 1_000

const id = z
  .string()
  .regex(idPattern, notAnId)
  .transform((digits) => readId(digits)!)
  .openapi(idSchema)

const isRange = (value: unknown) =>
  Array.isArray(value) &&
  value.length === 2 &&
  value.every((id) => typeof id === 'string' && readId(id) === id) &&
  BigInt(value[0]) <= BigInt(value[1]) &&
  BigInt(value[1]) <= Number.MAX_SAFE_INTEGER

/**
 * Checks a range in one step. As a tuple of ids, the 260,000 ranges that a body may have would take 430 ms of the main
 * thread.
 */
const range = z
  .custom<EntryRange>(isRange, 'must be two ids as texts, the lower first: ["0","8191"]')
  .openapi('EntryRange', rangeSchema)

const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256: 64 hexadecimal digits in lower case')

const society = id.openapi({ ...idSchema, description: 'Id of the folder' })

const ledger = z
  .strictObject({
    society,
    since: z.string().regex(cursorPattern, 'is not a cursor').optional().openapi({
      description: 'The cursor of the copy: movements only of what changed since. Absent: all',
    }),
    entries: z.array(range).min(1).max(rangesMax).optional().openapi({
      description: 'With since: ranges of entry ids that are wanted besides, both ends included',
    }),
    tables: z
      .strictObject(Object.fromEntries(wholeTables.map((name) => [name, sha256.optional()])))
      .openapi('HeldTables')
      .optional()
      .openapi({
        description:
          'SHA-256 of the rows that the copy has of a table. One that is still the same is left out',
      }),
  })
  .openapi('AskedLedger')
  .refine(({ since, entries }) => since !== undefined || entries === undefined, {
    path: ['entries'],
    message: 'is only taken with since',
  })

/** @param absent what a body without ledgers means */
function bodyOf<Ledger extends z.ZodType<{ society: string }>>(ledger: Ledger, absent: string) {
  return z.strictObject({
    ledgers: z
      .array(ledger)
      .min(1)
      .max(ledgersMax)
      .superRefine((ledgers, context) => {
        const seen = new Set<string>()
        for (const [at, { society }] of ledgers.entries()) {
          if (seen.has(society))
            context.addIssue({ code: 'custom', path: [at, 'society'], message: 'is named twice' })
          seen.add(society)
        }
      })
      .optional()
      .openapi({ description: `In the order in which they are wanted. Absent: ${absent}` }),
  })
}

export const changesBody = bodyOf(ledger, 'all folders of the token, in full').openapi('LedgerChangesRequest')

export const blocksBody = bodyOf(
  z.strictObject({ society }).openapi('AskedLedgerBlocks'),
  'all folders of the token',
).openapi('LedgerBlocksRequest')

export type LedgersBody = typeof changesBody | typeof blocksBody

/** @param all the ids of the folders that a body which names none means */
export async function askedLedgers(
  { ledgers }: z.output<typeof changesBody> | z.output<typeof blocksBody>,
  all: () => Promise<string[]>,
): Promise<AskedLedger[]> {
  if (ledgers)
    return ledgers.map(({ society, since, entries = [], tables = {} }: z.output<typeof ledger>) => ({
      society,
      since,
      entries: mergedRanges(entries),
      tables: tables as AskedLedger['tables'],
    }))
  return (await all()).map((society) => ({ society, since: undefined, entries: [], tables: {} }))
}
