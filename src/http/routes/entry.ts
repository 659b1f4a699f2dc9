/** `GET /api/v1/mad/entry`: the entry that a notification, an invoice or a partner's own record names. */
import { z } from '@hono/zod-openapi'
import { sha256 } from '../../auth/secrets.ts'
import { isId } from '../../db/literal.ts'
import { tagOf } from '../../exports/selection.ts'
import { formatRevisions } from '../../formats/file-formats.ts'
import { Entry } from '../../formats/items/entry.ts'
import { askForNamedEntry } from '../../ledger/named-entry.sql.ts'
import { accountingFolderId, text, version } from '../query.ts'
import { representationFor } from '../representation.ts'
import { folderRoute } from '../route.ts'
import { etagHeaders, streamed } from '../schemas/answer-headers.ts'
import { streamExport } from '../stream/stream-export.ts'
import { draft } from './movements-query.ts'

/** No import has a longer invoice number (docs/spec/imports.md#columns). PostgreSQL's texts have no NUL. */
const namePattern = /^[^\0]{1,255}$/u

const entryQuery = z.strictObject({
  version,
  accountingFolderId,
  id: text()
    .regex(namePattern, 'must have 1 to 255 characters, none of them NUL')
    .openapi({
      type: 'string',
      pattern: namePattern.source,
      description:
        'The producerId of an entry, draft or not, as notifications carry it; else the invoice number of one of its ' +
        'movements; else the partnerId of its partnerMetadata',
      example: '1175',
    }),
  draft,
})

export const entry = folderRoute({
  operationId: 'getEntry',
  path: '/api/v1/mad/entry',
  groups: ['movements'],
  summary: 'One entry with its movements',
  query: entryQuery,
  ...streamed(Entry, Entry, etagHeaders),
  // An invoice number is content of the books, which the audit must not hold.
  recorded: (query) =>
    isId(query.id) ? query : { ...query, id: { sha256: sha256(query.id).toString('hex') } },
  answer: async ({ c, services, query, principal, folderId }) => {
    const representation = representationFor(c)
    const { timeZone } = services.config
    const named = { schemaId: principal.schemaId, folderId, name: query.id, draft: query.draft ?? false }
    const { id, reference, cursor } = await askForNamedEntry(services.database, named, timeZone)
    const tagAt = (at: string) => tagOf('entry', formatRevisions.entries, at, named)
    return streamExport(c, services, {
      task: { what: 'entry', named, timeZone, ...representation },
      fileName: `${reference || folderId}_entry_${id}`,
      ledger: { cursor, tagAt },
    })
  },
})
