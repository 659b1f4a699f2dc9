/** One ledger of many, from one snapshot (docs/spec/ledgers.md#lines). */

import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type WholeTableName, wholeTables } from '../../../../packages/contract/src/ledger-tables.ts'
import { inUnits } from '../../../formats/minor-units.ts'
import { type EntryRange, everyEntry } from '../../../ledger/changes/entry-ranges.ts'
import { type Block, changedRanges, type FormerBlock } from '../../blocks/block.ts'
import { BlockCutter } from '../../blocks/block-cutter.ts'
import { readLedgerState, shownDigests, type TableDigests } from '../../blocks/kept-blocks.sql.ts'
import type { ChunkBuffer, Chunks } from '../../chunks.ts'
import { type ResolvedSelection, readFolderSpans } from '../../read/movements.sql.ts'
import type { Snapshot } from '../../read/snapshot.ts'
import { jsonLine, packPieces } from '../../render/framing.ts'
import { type LedgerRows, readLedgerRows } from '../../render/ledger-rows.ts'
import { FileTally, type Rendering, renderRanges, renderSegments, Tally } from '../../render/render-rows.ts'
import { wholeFolder } from '../../selection.ts'
import { readRanges } from '../produce.ts'
import { blocksLine, joinedRanges, proven, RowProofs, tableLine } from './lines.ts'
import type { AskedLedger, LedgerEnd, LedgersTask } from './task.ts'

export interface Ledger {
  /** All its chunks, from the first line on. After the last one the snapshot has nothing left to read. */
  chunks: Chunks
  /** Called after the last chunk. */
  end: () => LedgerEnd
}

/**
 * Looks up what is needed to read a ledger.
 * @param buffer for its chunks
 * @param spare for bytes that are used up at once
 * @throws {AppError} ERR-FOLDER-NOT-FOUND, ERR-VALIDATION, ERR-CURSOR-EXPIRED
 */
export async function beginLedger(
  snapshot: Snapshot,
  asked: AskedLedger,
  task: LedgersTask,
  buffer: ChunkBuffer,
  spare: ChunkBuffer,
): Promise<Ledger> {
  const { society, since, entries: besides } = asked
  const lookUp = async () => {
    const state = await readState(snapshot, asked, task)
    const { resolved, isKept, former } = state
    const entries = since === undefined ? everyEntry : await readRanges(snapshot, resolved, since, besides)
    // Digests are stored only for a ledger that is read whole, and computed only if the stored ones are not current.
    const cutter = since === undefined && !isKept ? new BlockCutter(await former()) : undefined
    return { ...state, entries: joinedRanges(entries), cutter }
  }
  // The two run in parallel, on two connections.
  const [{ cutter, ...found }, rows] = await Promise.all([
    lookUp(),
    readLedgerRows(snapshot.second, { ...task, folderId: society }),
  ])
  const { cursor, entries } = found
  const keptTables = found.tables && shownDigests(found.tables, task.withEmployees)
  const tally = new FileTally()
  const proofs = new RowProofs()
  const digests = {} as Record<WholeTableName, string>
  async function* head() {
    yield jsonLine({ ledger: society, since: since ?? null, cursor, entries })
    for (const name of wholeTables) {
      const known = asked.tables[name]
      digests[name] =
        known !== undefined && known === keptTables?.[name]
          ? known
          : // Each piece is copied into a chunk before the next is made.
            yield* tablePieces(rows.table(name, spare), known, name)
    }
    yield tableLine('movements')
  }
  async function* chunks(): Chunks {
    yield* packPieces(head(), buffer)
    const lines = copyLines(snapshot, found.resolved, entries, rows, { buffer, tally, cutter })
    for await (const piece of proven(lines, proofs, () => tally.movements))
      yield typeof piece === 'string' ? encoder.encode(piece) : piece
  }
  const end = () => {
    const { line, sha256 } = proofs.end()
    const { debit, credit } = tally
    const sums = { rows: proofs.rows, debit: inUnits(debit.total), credit: inUnits(credit.total) }
    const lines = line + jsonLine({ end: society, ...sums, tables: digests })
    const blocks = cutter?.end(tally.movements)
    const kept = blocks && { blocks, tables: rows.digests(digests, found.tables) }
    return { lines, cursor, rows: proofs.rows, sha256, kept }
  }
  return { chunks: chunks(), end }
}

function readState(
  { first }: Snapshot,
  { society }: AskedLedger,
  { schemaId, timeZone, tokenId }: LedgersTask,
) {
  return readLedgerState(first, wholeFolder({ schemaId, folderId: society }, timeZone), tokenId)
}

export async function* noChunks(): Chunks {}

const encoder = new TextEncoder()

/** Most bytes of a table that are held in memory. The accounts of a folder may have hundreds of megabytes. */
const heldBytesMax = 8 * 1024 * 1024

/**
 * The lines of a table, unless the caller has them.
 * @returns their SHA-256
 */
async function* tablePieces(
  lines: ReturnType<LedgerRows['table']>,
  known: string | undefined,
  name: WholeTableName,
): AsyncGenerator<Uint8Array | string, string> {
  const proofs = new RowProofs()
  // The digest that tells whether the caller has these lines is known after the last one. Until then the lines are held;
  // a table that is too long to be held is sent in any case.
  let held: (Uint8Array | string)[] | undefined = known === undefined ? undefined : []
  let heldBytes = 0
  if (!held) yield tableLine(name)
  for await (const piece of proven(lines, proofs)) {
    if (!held) yield piece
    else {
      held.push(typeof piece === 'string' ? piece : piece.slice())
      heldBytes += piece.length
      if (heldBytes > heldBytesMax) {
        yield* [tableLine(name), ...held]
        held = undefined
      }
    }
  }
  const { line, sha256 } = proofs.end()
  if (!held) yield line
  else if (sha256 !== known) yield* [tableLine(name), ...held, line]
  return sha256
}

/** The lines of the movements in these ranges. */
async function* copyLines(
  snapshot: Snapshot,
  resolved: ResolvedSelection,
  entries: readonly EntryRange[],
  rows: LedgerRows,
  rendering: Rendering,
): Chunks {
  if (entries.length === 0) return
  const format = await rows.movements()
  if (!isDeepStrictEqual(entries, everyEntry))
    return yield* renderRanges(snapshot, resolved, entries, format, rendering)
  const spans = await readFolderSpans(snapshot.first, resolved.selection)
  yield* renderSegments(snapshot, resolved, spans, format, rendering)
}

/**
 * The digests of one ledger of many, from one snapshot (docs/spec/ledgers.md#blocks). The rows are rendered, but not
 * sent.
 * @throws {AppError} ERR-FOLDER-NOT-FOUND
 * @throws {UnsupportedByFormat} for a row that is too long
 */
export async function beginBlocks(
  snapshot: Snapshot,
  asked: AskedLedger,
  task: LedgersTask,
  _: ChunkBuffer,
  spare: ChunkBuffer,
): Promise<Ledger> {
  const { society } = asked
  const { cursor, former: readFormer, ...state } = await readState(snapshot, asked, task)
  // The two run in parallel, on two connections.
  const [former, rows] = await Promise.all([
    readFormer(),
    readLedgerRows(snapshot.second, { ...task, folderId: society }),
  ])
  const tables = state.tables ?? (await digestTables(rows, spare))
  const cutter = new BlockCutter(former)
  const tally = new Tally()
  const rendering = { buffer: spare, tally, cutter }
  for await (const _ of copyLines(snapshot, state.resolved, rangesOf(former), rows, rendering));
  const kept = { blocks: cutter.end(tally.movements), tables }
  return {
    chunks: noChunks(),
    end: () => ({ ...blocksLine(society, cursor, kept, task.withEmployees), kept }),
  }
}

/**
 * The ranges to be rendered again. If they have much of the ledger, all of it is rendered, because ranges must be looked
 * up and sorted.
 */
function rangesOf(former: readonly FormerBlock[]): readonly EntryRange[] {
  const changed = former.filter((block) => block.changed)
  return 4 * rowsOf(changed) > rowsOf(former) ? everyEntry : changedRanges(former)
}

const rowsOf = (blocks: readonly Block[]) => blocks.reduce((sum, { rows }) => sum + rows, 0)

async function digestTables(rows: LedgerRows, buffer: ChunkBuffer): Promise<TableDigests> {
  const digests = {} as Record<WholeTableName, string>
  for (const name of wholeTables) {
    const hash = createHash('sha256')
    for await (const lines of rows.table(name, buffer)) hash.update(lines)
    digests[name] = hash.digest('hex')
  }
  return rows.digests(digests, undefined)
}
