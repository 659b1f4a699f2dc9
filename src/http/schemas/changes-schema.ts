import { z } from '@hono/zod-openapi'
import { idSchema, rangeSchema } from '../query.ts'

export const cursorExample = '4711.1.jWShZ-gx.EeSGmSmtIuJfr19E1z0hHo'

const cursor = z.string().openapi({ example: cursorExample })

/** The first line of an answer to `since`; `exports/run/task.ts` writes it. */
export const ChangesLine = z
  .object({
    since: cursor.openapi({ description: 'As in the request' }),
    cursor: cursor.openapi({ description: 'The state of the ledger that this answer leads to' }),
    entries: z.array(z.array(z.string()).openapi('EntryRange', rangeSchema)).openapi({
      description:
        'Ranges of entry ids, both ends included, ascending and disjoint. Drop what you have of them',
      example: [
        ['1175', '1175'],
        ['2001', '2010'],
      ],
    }),
  })
  .openapi('ChangesLine', { description: 'The first line of an answer to since, before the items' })

/** An item of `movements/blocks`; `exports/blocks/block.ts` writes it. */
export const Block = z
  .object({
    from: z.string().openapi({ ...idSchema, description: 'Id of an entry. The first block begins at 0' }),
    to: z
      .string()
      .openapi({ ...idSchema, description: 'Inclusive. The last block ends at 9007199254740991' }),
    rows: z.int().min(0).openapi({ description: 'Movements of entries in this range' }),
    sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .openapi({ description: 'Of their lines in NDJSON, each with its line feed, in the usual order' }),
  })
  .meta({ id: 'Block' })
