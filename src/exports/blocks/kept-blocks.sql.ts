/** The digests that are kept of an exercice's validated movements: one row of `movement_blocks` each. */
import { Buffer } from 'node:buffer'
import type pg from 'pg'
import { idLiteral, textLiteral } from '../../db/literal.ts'
import { askInTenant, inTenant } from '../../db/pool.ts'
import { readChangedEntries } from '../../ledger/changes/changed-entries.sql.ts'
import { renderingOf } from '../../ledger/changes/cursor.sql.ts'
import type { Block, KeptSelection } from './block.ts'
import { type FormerBlock, markChanged, noBlocks } from './former-blocks.ts'

interface BlocksRow {
  firstIds: string[]
  rows: number[]
  digests: Buffer
}

const columns = 'b.first_ids as "firstIds", b.rows, b.digests'

/** SHA-256. */
const digestBytes = 32

const blocksOf = ({ firstIds, rows, digests }: BlocksRow): Block[] =>
  firstIds.map((first, i) => ({
    first: Number(first),
    rows: rows[i]!,
    sha256: digests.toString('hex', digestBytes * i, digestBytes * (i + 1)),
  }))

/** The blocks at a state of the ledger; undefined if none are kept of it. @param cursor names the state */
export async function askForBlocks(
  pool: pg.Pool,
  { schemaId, folderId, exerciceId }: KeptSelection,
  cursor: string,
): Promise<Block[] | undefined> {
  const rows = await askInTenant<BlocksRow>(
    pool,
    schemaId,
    `select ${columns} from movement_blocks b
     where b.schema_id = ${idLiteral(schemaId)} and b.folder_id = ${idLiteral(folderId)}
       and b.exercice_id = ${idLiteral(exerciceId)} and b.cursor = ${textLiteral(cursor)}`,
  )
  return rows[0] && blocksOf(rows[0])
}

/** The blocks that are kept, and which of them have changed since; `noBlocks` if that is unknown. */
export async function readFormerBlocks(
  client: pg.ClientBase,
  selection: KeptSelection,
): Promise<readonly FormerBlock[]> {
  const { schemaId, folderId, exerciceId, timeZone } = selection
  const { rows } = await client.query<BlocksRow & { version: string }>({
    name: 'kept blocks',
    text: `select c.version, ${columns}
           from movement_blocks b cross join lateral read_ledger_cursor(b.cursor, b.schema_id, b.folder_id, $4) c
           where b.schema_id = $1 and b.folder_id = $2 and b.exercice_id = $3 and c.refusal is null`,
    values: [schemaId, folderId, exerciceId, renderingOf(timeZone)],
  })
  const [kept] = rows
  if (!kept) return noBlocks
  const watched = { schemaId, folderId, exerciceIds: [exerciceId], among: [] }
  return markChanged(blocksOf(kept), await readChangedEntries(client, watched, kept.version))
}

/** Keeps the blocks, unless those of the same state or a later one are kept. @param cursor names their state */
export async function keepBlocks(
  pool: pg.Pool,
  { schemaId, folderId, exerciceId, timeZone }: KeptSelection,
  cursor: string,
  blocks: readonly Block[],
): Promise<void> {
  await inTenant(pool, schemaId, (client) =>
    client.query(
      `insert into movement_blocks as kept
         (schema_id, folder_id, exercice_id, cursor, version, first_ids, rows, digests)
       select $1, $2, $3, $4, c.version, $6, $7, $8 from read_ledger_cursor($4, $1, $2, $5) c
       where c.refusal is null
       on conflict (schema_id, folder_id, exercice_id) do update set
         cursor = excluded.cursor, version = excluded.version,
         first_ids = excluded.first_ids, rows = excluded.rows, digests = excluded.digests
       where kept.version < excluded.version
         or exists (select from read_ledger_cursor(kept.cursor, $1, $2, $5) c where c.refusal is not null)`,
      [
        schemaId,
        folderId,
        exerciceId,
        cursor,
        renderingOf(timeZone),
        blocks.map(({ first }) => first),
        blocks.map(({ rows }) => rows),
        Buffer.from(blocks.map(({ sha256 }) => sha256).join(''), 'hex'),
      ],
    ),
  )
}
