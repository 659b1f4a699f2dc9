/** `POST /mad/ledgers/blocks`: digests of many ledgers, to compare copies with (docs/spec/ledgers.md#blocks). */
import { z } from '@hono/zod-openapi'
import { errorCodes } from '../../../../packages/contract/src/error-codes.ts'
import { wholeTables } from '../../../../packages/contract/src/ledger-tables.ts'
import { opensEmployees } from '../../../auth/principal.ts'
import { askForBlocks } from '../../../exports/blocks/kept-blocks.sql.ts'
import { blocksLine } from '../../../exports/run/ledgers/lines.ts'
import { wholeFolder } from '../../../exports/selection.ts'
import { named } from '../../../formats/items/values.ts'
import { idSchema } from '../../query.ts'
import { Block } from '../../schemas/changes-schema.ts'
import { ledgersRoute } from './answer-ledgers.ts'
import { blocksBody } from './changes-body.ts'

const sha256 = Block.shape.sha256

const LedgerBlocks = named('LedgerBlocks', {
  society: z.string().openapi({ ...idSchema, example: '26002' }),
  cursor: z.string().openapi({
    description: 'The state of the ledger that the digests are of',
    example: '4711.1.jWShZ-gx.EeSGmSmtIuJfr19E1z0hHo',
  }),
  rows: z.int().min(0).openapi({ description: 'Movements of the ledger, drafts included' }),
  digest: sha256.openapi({ description: 'Of the digests of the blocks, as bytes, in their order' }),
  tables: z
    .object(
      Object.fromEntries(
        wholeTables.map((name) => [name, sha256.openapi({ description: `Of all rows of ${name}` })]),
      ),
    )
    .openapi('TableDigests', {
      description: 'Of the other tables, rows as in ledgers/changes, each with its line feed',
    }),
  blocks: z.array(Block).openapi({
    description:
      'Ranges of entry ids, disjoint and ascending, with the digest of their movements as rows of ledgers/changes. ' +
      'Rows of a copy outside every block differ, too',
  }),
})

const RefusedLedger = named('RefusedLedger', {
  refused: z.string().openapi({ ...idSchema, description: 'Id of the folder', example: '26003' }),
  code: z
    .enum(Object.keys(errorCodes) as [string, ...string[]])
    .openapi('ErrorCode', { example: 'ERR-FOLDER-NOT-FOUND' }),
  message: z.string().openapi({ example: 'There is no such folder' }),
})

export const ledgerBlocks = ledgersRoute({
  operationId: 'listLedgerBlocks',
  path: '/api/v1/mad/ledgers/blocks',
  summary: 'Digests of many ledgers, or all of them, by ranges of entry ids, to compare copies with',
  body: { schema: blocksBody, example: { ledgers: [{ society: '26002' }, { society: '26003' }] } },
  what: 'ledger blocks',
  form: 'ndjson',
  answered: {
    description: 'One line for each ledger, in the order of the request',
    schema: z.union([LedgerBlocks, RefusedLedger]),
  },
  known: async ({ services, principal }, asked, cursor) => {
    const { database, config } = services
    const { schemaId } = principal
    const folder = wholeFolder({ schemaId, folderId: asked.society }, config.timeZone)
    const kept = await askForBlocks(database, folder, cursor)
    if (!kept?.tables) return undefined
    const { blocks, tables } = kept
    const known = blocksLine(asked.society, cursor, { blocks, tables }, opensEmployees(principal))
    return { kind: 'known', asked, known }
  },
})
