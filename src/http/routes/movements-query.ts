/**
 * Parameters of the exports of movements (docs/spec/exports.md#movements), of entries (docs/spec/exports.md#entries)
 * and of balances (docs/spec/exports.md#balance), and their conversion to a selection.
 */
import { z } from '@hono/zod-openapi'
import type { Pool } from 'pg'
import type { Issue } from '../../../packages/contract/src/error-codes.ts'
import { readId } from '../../db/literal.ts'
import { AppError } from '../../errors.ts'
import { readSelected, type SelectedKey, type SelectionFacts } from '../../exports/read/selected.sql.ts'
import type { Selection } from '../../exports/selection.ts'
import { sourceCodes } from '../../formats/items/entry.ts'
import { mergedRanges } from '../../ledger/changes/entry-ranges.ts'
import {
  accountingFolderId,
  checkedTogether,
  date,
  type GivenQuery,
  id,
  ids,
  oneOf,
  optional,
  several,
  text,
  version,
  wait,
} from '../query.ts'

/** Longer periods are refused: partners pull one year at a time. */
const periodMonthsMax = 12

const accountRootPattern = /^[0-9A-Za-z]{1,17}%?$/

const accountRoot = z
  .string()
  .regex(accountRootPattern, 'must be roots of account numbers: 1 to 17 digits or letters each')
  .transform((root) => root.replace('%', '').toUpperCase())

const timeParameters = {
  version,
  accountingFolderId,
  idExercice: optional(id).openapi({ description: 'The fiscal year, instead of a period' }),
  startDate: optional(date),
  endDate: optional(date).openapi({
    description: `Inclusive; less than ${periodMonthsMax} months after startDate`,
  }),
}

/** If present, only entries awaiting validation are selected. */
export const draft = text()
  .transform((value) => value.toLowerCase() !== 'false' && value !== '0')
  .optional()
  .openapi({
    type: 'string',
    description: 'Present: only entries awaiting validation (false or 0 count as absent)',
  })

const selectionParameters = {
  ...timeParameters,
  dateFilter: optional(oneOf(['document', 'platform', 'accounting'])).openapi({
    description: 'The date to which the period applies; document by default',
  }),
  source: optional(oneOf(sourceCodes)),
  draft,
}

const classAccount = several(accountRoot)
  .optional()
  .openapi({
    type: 'array',
    items: { type: 'string', pattern: accountRootPattern.source },
    minItems: 1,
    description: 'Roots of account numbers',
    example: ['60', '61'],
  })

const rangesMax = 100

const rangePattern = /^(\d{1,16})-(\d{1,16})$/

const notARange = 'must be ranges of entry ids such as 1175-2010, the lower one first'

const entryRange = z
  .string()
  .regex(rangePattern, notARange)
  .transform((range) => range.split('-').map((end) => readId(end)) as [from: string, to: string])
  .refine(([from, to]) => BigInt(from) <= BigInt(to), notARange)

/** A cursor is opaque: only the database can say whether the service made it. */
export const cursorPattern = /^[A-Za-z0-9._-]{1,64}$/

/** The parameters that ask for a part of the selection. */
const partParameters = {
  entries: several(entryRange)
    .refine((ranges) => ranges.length <= rangesMax, `must be at most ${rangesMax} ranges`)
    .transform(mergedRanges)
    .optional()
    .openapi({
      type: 'array',
      items: { type: 'string', pattern: rangePattern.source },
      minItems: 1,
      maxItems: rangesMax,
      description: 'Only entries whose id is in one of these ranges, both ends included',
      example: ['1175-1175', '2001-2010'],
    }),
  since: optional(text().regex(cursorPattern, 'is not a cursor of this folder')).openapi({
    type: 'string',
    pattern: cursorPattern.source,
    description:
      'Only what changed since this cursor, in NDJSON: a first line with ranges of entry ids, then the lines of the ' +
      'selection in these ranges. Not with `after` or `entries`',
  }),
  wait,
}

const afterOf = (item: 'movement' | 'entry') =>
  optional(id).openapi({
    description: `Continue after the ${item} with this producerId; with If-Match, in the same state of the ledger`,
  })

const ofMovements = {
  ...selectionParameters,
  classAccount,
  lettering: optional(oneOf(['none', 'partial', 'complete'])),
}

export const movementsQuery = checkedTogether(
  z.strictObject({ ...ofMovements, after: afterOf('movement'), ...partParameters }),
  selectionIssues,
)

export const blocksQuery = checkedTogether(z.strictObject(ofMovements), selectionIssues)

export const entriesQuery = checkedTogether(
  z.strictObject({
    ...selectionParameters,
    journalIds: ids({ description: 'Entries of these journals only' }),
    columns: optional(oneOf(['extended'])).openapi({
      description: '`extended`: with the number of each entry and what else a FEC says of it',
    }),
    after: afterOf('entry'),
    ...partParameters,
  }),
  selectionIssues,
)

export const balanceQuery = checkedTogether(
  z.strictObject({ ...timeParameters, classAccount }),
  selectionIssues,
)

/** The parsed query of these routes. Each route has some of the parameters. */
export type SelectedQuery = Partial<z.output<typeof movementsQuery> & z.output<typeof entriesQuery>>

function selectionIssues(query: GivenQuery): Issue[] {
  const ofPeriod = ['startDate', 'endDate', 'dateFilter']
  return [...periodIssues(query, ofPeriod, periodMonthsMax, 'required'), ...partIssues(query)]
}

/** Refuses parameters that ask for a part of a delta: its ranges would cover more than the lines of that part. */
function partIssues({ since, wait, ...query }: GivenQuery): Issue[] {
  if (since === undefined)
    return wait === undefined ? [] : [{ parameter: 'wait', message: 'is only taken with since' }]
  return notCombined(query, ['after', 'entries'], 'since')
}

export function selectionOf(
  query: SelectedQuery,
  { schemaId, folderId, timeZone }: Pick<Selection, 'schemaId' | 'folderId' | 'timeZone'>,
): Selection {
  const { startDate, endDate, dateFilter = 'document', classAccount = [], journalIds = [] } = query
  return {
    schemaId,
    folderId,
    exerciceId: query.idExercice,
    period:
      startDate !== undefined && endDate !== undefined
        ? { start: startDate, end: endDate, dateFilter }
        : undefined,
    draft: query.draft ?? false,
    source: query.source,
    accountRoots: [...new Set(classAccount)].sort(),
    lettering: query.lettering,
    journalIds: [...new Set(journalIds)].sort(),
    timeZone,
  }
}

/**
 * Problems of idExercice, startDate and endDate together; the schema of each checks it alone. Periods of `monthsMax`
 * calendar months or more are refused.
 * @param ofPeriod names the parameters of a period, which cannot be combined with a fiscal year
 * @param need whether a fiscal year or a period must be given
 */
export function periodIssues(
  given: GivenQuery,
  ofPeriod: readonly string[],
  monthsMax: number,
  need: 'required' | 'optional',
): Issue[] {
  const { idExercice, startDate, endDate } = given
  const issue = (parameter: string, message: string) => [{ parameter, message }]
  if (idExercice !== undefined) return notCombined(given, ofPeriod, 'idExercice')
  if (startDate === undefined && endDate === undefined)
    return need === 'required' ? issue('idExercice', 'is required, or startDate and endDate together') : []
  if (startDate === undefined) return issue('startDate', 'is required with endDate')
  if (endDate === undefined) return issue('endDate', 'is required with startDate')
  const [start, end] = [date.safeParse(startDate), date.safeParse(endDate)]
  if (!start.success || !end.success) return []
  if (end.data < start.data) return issue('endDate', 'must not be before startDate')
  // A day that the last month lacks counts as its last: from 2024-02-29, 12 months end before 2025-02-28.
  const tooLate = Temporal.PlainDate.from(start.data).add({ months: monthsMax })
  if (Temporal.PlainDate.compare(tooLate, end.data) > 0) return []
  return issue('endDate', `must be less than ${monthsMax} months after startDate`)
}

function notCombined(given: GivenQuery, parameters: readonly string[], other: string): Issue[] {
  return parameters
    .filter((parameter) => given[parameter] !== undefined)
    .map((parameter) => ({ parameter, message: `cannot be combined with ${other}` }))
}

/**
 * Looks up the selection; every id in it must exist.
 * @throws {AppError} ERR-FOLDER-NOT-FOUND, ERR-EXERCICE-NOT-FOUND, ERR-JOURNAL-NOT-FOUND
 */
export async function findSelected(
  database: Pool,
  selection: SelectedKey,
  since?: string,
): Promise<SelectionFacts> {
  const { exerciceId, journalIds } = selection
  const selected = await readSelected(database, selection, since)
  if (!selected) throw new AppError('ERR-FOLDER-NOT-FOUND')
  if (exerciceId !== undefined && !selected.period) throw new AppError('ERR-EXERCICE-NOT-FOUND')
  const unknownIds = journalIds.filter((id) => !selected.journalIds.includes(id))
  if (unknownIds.length > 0) {
    throw new AppError('ERR-JOURNAL-NOT-FOUND', {
      message: `Not journals of this folder: ${unknownIds.join(', ')}`,
    })
  }
  return selected
}
