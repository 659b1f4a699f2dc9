/**
 * Keeps and reads two kinds of digests. Digests of an exercice's validated movements are one row of `movement_blocks`; digests of
 * a whole ledger with its tables are one row of `ledger_blocks`.
 *
 * Digests belong to a version and a rendering, not to an epoch: if they survive a failover, so does their ledger, in
 * the same database. The epoch counts only when they are written: what a process has read may be lost by then, and
 * versions that were drawn since are later. Only the rendering is read from the column `cursor`; processes of 0.2.0 use
 * all of it.
 */
import type pg from 'pg'
import { type WholeTableName, wholeTables } from '../../../packages/contract/src/ledger-tables.ts'
import { idArrayLiteral, idLiteral, textLiteral } from '../../db/literal.ts'
import { askInTenant } from '../../db/pool.ts'
import { queryRow } from '../../db/statement.ts'
import { AppError } from '../../errors.ts'
import type { FolderKey } from '../../formats/rows.ts'
import { readChangedEntries } from '../../ledger/changes/changed-entries.sql.ts'
import { renderingExpression, renderingOf } from '../../ledger/changes/cursor.sql.ts'
import type { Selection } from '../selection.ts'
import { type Block, type FormerBlock, markChanged, noBlocks } from './block.ts'

/**
 * Which movements the digests cover. With `exerciceId`: those of an exercice, as lines of NDJSON. Without it: those of
 * a whole ledger, as rows of COPY.
 */
export interface DigestsKey extends FolderKey {
  exerciceId: string | undefined
  timeZone: string
}

/**
 * SHA-256 of the rows of each table except movements, hexadecimal. Accounts have a second one, without the data of
 * employees.
 */
export type TableDigests = Readonly<Record<(typeof keptTables)[number], string>>
const keptTables = [...wholeTables, 'accountsWithoutEmployees'] as const

/**
 * The digests of the tables as a reader gets them.
 * @param withEmployees whether the reader may see the personal data of employees
 */
export function shownDigests(
  { accountsWithoutEmployees, ...tables }: TableDigests,
  withEmployees: boolean,
): Readonly<Record<WholeTableName, string>> {
  return withEmployees ? tables : { ...tables, accounts: accountsWithoutEmployees }
}

export interface KeptDigests {
  blocks: Block[]
  /** Digests of the tables; undefined unless the digests are those of a whole ledger. */
  tables: TableDigests | undefined
}

interface KeptRow {
  firstIds: string[]
  rows: number[]
  digests: Buffer
  tables?: Buffer
}

const whole = { table: 'ledger_blocks', key: 'schema_id, folder_id', last: 'tables' } as const
const ofExercice = {
  table: 'movement_blocks',
  key: 'schema_id, folder_id, exercice_id',
  last: 'exercice_id',
} as const

const keptIn = ({ exerciceId }: DigestsKey) => (exerciceId === undefined ? whole : ofExercice)

/** An SQL expression: whether the log still has every change since the row `b`. */
const isRemembered = `not exists (
  select from ledger_changes c where (c.schema_id, c.folder_id) = (b.schema_id, b.folder_id)
    and c.kind = 'forgotten' and c.version > b.version)`

/** The columns of a row `b`, after `select`. */
const digestColumns = ({ exerciceId }: DigestsKey) =>
  `b.first_ids as "firstIds", b.rows, b.digests${exerciceId === undefined ? ', b.tables' : ''}`

/** Length of a SHA-256. */
const digestBytes = 32

const digestAt = (digests: Buffer, i: number) =>
  digests.toString('hex', digestBytes * i, digestBytes * (i + 1))

const bytesLiteral = (sha256s: string[]) => `${textLiteral(`\\x${sha256s.join('')}`)}::bytea`

const blocksOf = ({ firstIds, rows, digests }: KeptRow): Block[] =>
  firstIds.map((first, i) => ({ first: Number(first), rows: rows[i]!, sha256: digestAt(digests, i) }))

const tableDigestsOf = (tables: Buffer): TableDigests =>
  Object.fromEntries(keptTables.map((name, i) => [name, digestAt(tables, i)])) as TableDigests

/**
 * Reads the digests at a state of the ledger. Undefined if none of this state are kept.
 * @param cursor names the state
 */
export async function askForBlocks(
  pool: pg.Pool,
  key: DigestsKey,
  cursor: string,
): Promise<KeptDigests | undefined> {
  const { schemaId, folderId, exerciceId } = key
  const [version, , rendering] = cursor.split('.')
  const [kept] = await askInTenant<KeptRow>(
    pool,
    schemaId,
    `select ${digestColumns(key)} from ${keptIn(key).table} b
     where b.schema_id = ${idLiteral(schemaId)} and b.folder_id = ${idLiteral(folderId)}
       ${exerciceId === undefined ? '' : `and b.exercice_id = ${idLiteral(exerciceId)}`}
       and b.version = ${idLiteral(version!)} and ${renderingExpression('b.cursor')} = ${textLiteral(rendering!)}`,
  )
  return kept && { blocks: blocksOf(kept), tables: kept.tables && tableDigestsOf(kept.tables) }
}

/** Reads the kept blocks of an exercice, and which of them have changed since; `noBlocks` if that is unknown. */
export async function readFormerBlocks(
  client: pg.ClientBase,
  key: DigestsKey & { exerciceId: string },
): Promise<readonly FormerBlock[]> {
  const { schemaId, folderId, exerciceId, timeZone } = key
  const kept = await queryRow<KeptRow & { version: string }>(client, {
    name: 'kept blocks',
    text: `select b.version, ${digestColumns(key)} from movement_blocks b
           where b.schema_id = $1 and b.folder_id = $2 and b.exercice_id = $4 and ${renderingExpression('b.cursor')} = $3 and ${isRemembered}`,
    values: [schemaId, folderId, renderingOf(timeZone), exerciceId],
  })
  if (!kept) return noBlocks
  const watched = { schemaId, folderId, exerciceIds: [exerciceId], among: [] }
  return markChanged(blocksOf(kept), await readChangedEntries(client, watched, kept.version))
}

/**
 * Reads the state of one ledger of many, with its kept digests, in one round trip of its snapshot.
 *
 * Checks again that the token opens the folder: since the main thread checked, the token may have been revoked, or
 * the folder moved to another firm. A replica that lacks the token shows a state from before it was issued.
 * @param selection the whole folder
 * @throws {AppError} ERR-FOLDER-NOT-FOUND
 */
export async function readLedgerState(client: pg.ClientBase, selection: Selection, tokenId: string) {
  const { schemaId, folderId, timeZone } = selection
  const found = await queryRow<
    KeptRow & {
      cursor: string
      exerciceIds: string[]
      /** Whether the kept digests are of this state. Without usable digests, this and the next columns are null. */
      isKept: boolean | null
      version: string
      hasTables: boolean | null
    }
  >(client, {
    name: 'ledger state',
    text: `select ledger_cursor(f.schema_id, f.id, f.ledger_version, $3) as cursor,
             array(select id::text from exercices where schema_id = $1 and folder_id = $2) as "exerciceIds", k.*
           from folders f left join lateral (
             select b.version = f.ledger_version as "isKept", b.version, ${digestColumns(selection)},
               coalesce(t.version <= b.version, true) as "hasTables"
             from ledger_blocks b
               left join table_changes t on (t.schema_id, t.folder_id) = (b.schema_id, b.folder_id)
             where b.schema_id = $1 and b.folder_id = $2 and ${renderingExpression('b.cursor')} = $3 and ${isRemembered}
           ) k on true
           where f.schema_id = $1 and f.id = $2 and not exists (
             select from tokens t where t.id = $4
               and (t.revoked_at is not null or t.expires_at <= clock_timestamp()
                 or not coalesce(t.folder_id = f.id, t.firm_id = f.firm_id)))`,
    values: [schemaId, folderId, renderingOf(timeZone), tokenId],
  })
  if (!found) throw new AppError('ERR-FOLDER-NOT-FOUND')
  const { cursor, exerciceIds, isKept, version } = found
  const watched = { schemaId, folderId, exerciceIds, among: [] }
  const changed = () => (isKept ? [] : readChangedEntries(client, watched, version))
  return {
    cursor,
    resolved: { selection, exerciceIds },
    isKept: isKept === true,
    /** The digests of its tables, if none of these has changed since they were kept. */
    tables: found.hasTables ? tableDigestsOf(found.tables!) : undefined,
    /** The blocks that are kept, and which of them have changed since; `noBlocks` if that is unknown. */
    former: async () => (isKept === null ? noBlocks : markChanged(blocksOf(found), await changed())),
  }
}

/**
 * Keeps the digests, unless digests of this state or a later one are kept already, or the state was lost in a
 * failover: the database refuses cursors of former epochs.
 * @param cursor names their state
 */
export async function keepBlocks(
  pool: pg.Pool,
  key: DigestsKey,
  cursor: string,
  { blocks, tables }: KeptDigests,
): Promise<void> {
  const { schemaId, folderId, exerciceId, timeZone } = key
  const { table, key: keyColumns, last } = keptIn(key)
  const [ofSchema, ofFolder] = [idLiteral(schemaId), idLiteral(folderId)]
  const rendering = textLiteral(renderingOf(timeZone))
  const kept = [
    idArrayLiteral(blocks.map(({ first }) => String(first))),
    idArrayLiteral(blocks.map(({ rows }) => String(rows))),
    bytesLiteral(blocks.map(({ sha256 }) => sha256)),
    tables ? bytesLiteral(keptTables.map((name) => tables[name])) : idLiteral(exerciceId!),
  ]
  await askInTenant(
    pool,
    schemaId,
    `insert into ${table} as b (schema_id, folder_id, cursor, version, first_ids, rows, digests, ${last})
     select ${ofSchema}, ${ofFolder}, ${textLiteral(cursor)}, c.version, ${kept.join(', ')}
     from read_ledger_cursor(${textLiteral(cursor)}, ${ofSchema}, ${ofFolder}, ${rendering}) c where c.refusal is null
     on conflict (${keyColumns}) do update set
       cursor = excluded.cursor, version = excluded.version, first_ids = excluded.first_ids,
       rows = excluded.rows, digests = excluded.digests, ${last} = excluded.${last}
     where b.version < excluded.version or ${renderingExpression('b.cursor')} <> ${rendering}`,
  )
}
