/**
 * Parameters of the exports of movements (interface, section 4.4; contract, section 2) and of entries (contract, section
 * 4), and the selection they make.
 */
import { z } from '@hono/zod-openapi'
import type { Issue } from '../../errors.ts'
import type { Selection } from '../../exports/selection.ts'
import { sourceCodes, spansMonths } from '../../exports/selection.ts'
import { accountingFolderId, date, id, idForm, oneOf, optional, several, text, version } from '../query.ts'

/** A period of more is refused: partners pull a year at a time. */
const periodMonthsMax = 12

const accountRootPattern = /^[0-9A-Za-z]{1,17}%?$/

const accountRoot = z
  .string()
  .regex(accountRootPattern, 'must be roots of account numbers: 1 to 17 digits or letters each')
  .transform((root) => root.replace('%', '').toUpperCase())

const selectionParameters = {
  version,
  accountingFolderId,
  idExercice: optional(id).openapi({ description: 'The fiscal year; or a period in its place' }),
  startDate: optional(date),
  endDate: optional(date).openapi({
    description: `Inclusive; less than ${periodMonthsMax} months after startDate`,
  }),
  dateFilter: optional(oneOf(['document', 'platform', 'accounting'])).openapi({
    description: 'The date that the period is about; document where absent',
  }),
  source: optional(oneOf(sourceCodes)),
  draft: text()
    .transform((value) => value !== 'false' && value !== '0')
    .optional()
    .openapi({
      type: 'string',
      description: 'Present: only entries awaiting validation (false or 0 count as absent)',
    }),
}

export const movementsQuery = z
  .strictObject({
    ...selectionParameters,
    classAccount: several(accountRoot)
      .optional()
      .openapi({
        type: 'array',
        items: { type: 'string', pattern: accountRootPattern.source },
        minItems: 1,
        description: 'Accounts whose number starts so',
        example: ['60', '61'],
      }),
    lettering: optional(oneOf(['none', 'partial', 'complete'])),
    after: optional(id).openapi({ description: 'Continue behind the movement with this producerId' }),
  })
  .superRefine(checkSelection, { when: () => true })

export const entriesQuery = z
  .strictObject({
    ...selectionParameters,
    journalIds: several(id).optional().openapi({
      type: 'array',
      items: idForm,
      minItems: 1,
      description: 'Entries of these journals only',
    }),
    after: optional(id).openapi({ description: 'Continue behind the entry with this producerId' }),
  })
  .superRefine(checkSelection, { when: () => true })

export type MovementsQuery = z.output<typeof movementsQuery>
export type EntriesQuery = z.output<typeof entriesQuery>

function checkSelection(query: object, context: z.RefinementCtx): void {
  for (const { parameter, message } of selectionIssues(query)) {
    context.addIssue({ code: 'custom', path: [parameter], message })
  }
}

/** What is wrong with the parameters together. Single ones may be wrong too: all mistakes are told at once. */
function selectionIssues(query: object): Issue[] {
  const { idExercice, startDate, endDate, dateFilter } = query as Record<string, unknown>
  if (idExercice !== undefined) {
    return Object.entries({ startDate, endDate, dateFilter })
      .filter(([, value]) => value !== undefined)
      .map(([parameter]) => ({ parameter, message: 'cannot be combined with idExercice' }))
  }
  if (startDate === undefined && endDate === undefined) {
    return [{ parameter: 'idExercice', message: 'is required, or startDate and endDate together' }]
  }
  if (startDate === undefined) return [{ parameter: 'startDate', message: 'is required with endDate' }]
  if (endDate === undefined) return [{ parameter: 'endDate', message: 'is required with startDate' }]
  const [start, end] = [date.safeParse(startDate), date.safeParse(endDate)]
  if (!start.success || !end.success) return []
  if (end.data < start.data) return [{ parameter: 'endDate', message: 'must not lie before startDate' }]
  if (spansMonths(start.data, end.data, periodMonthsMax)) {
    return [{ parameter: 'endDate', message: `must lie less than ${periodMonthsMax} months after startDate` }]
  }
  return []
}

/** Each route lacks the filters of the other. */
const noFilters = { classAccount: undefined, lettering: undefined, journalIds: undefined }

export function selectionOf(
  query: MovementsQuery | EntriesQuery,
  { schemaId, folderId, timeZone }: Pick<Selection, 'schemaId' | 'folderId' | 'timeZone'>,
): Selection {
  const { startDate, endDate } = query
  const { classAccount, lettering, journalIds } = { ...noFilters, ...query }
  return {
    schemaId,
    folderId,
    exerciceId: query.idExercice,
    period:
      startDate !== undefined && endDate !== undefined
        ? { start: startDate, end: endDate, dateFilter: query.dateFilter ?? 'document' }
        : undefined,
    draft: query.draft ?? false,
    source: query.source,
    accountRoots: [...new Set(classAccount ?? [])].sort(),
    lettering,
    journalIds: [...new Set(journalIds ?? [])].sort(),
    timeZone,
  }
}
