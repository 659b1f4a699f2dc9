/**
 * Pulls movements into a file that is whole or absent. After a kill the next run continues, after the last piece that
 * it wrote.
 *
 * The proof: over one connection the library compares the trailers with what it gave out. Otherwise, of a file that
 * several connections or runs wrote, the file is read again and compared with the ledger's blocks at its cursor.
 */
import { createHash } from 'node:crypto'
import { countText, rateText, sizeText } from '../../../../terminal/src/amounts.ts'
import { Failure } from '../../../../terminal/src/command-errors.ts'
import type { Terminal } from '../../../../terminal/src/terminal.ts'
import { type Block, BlockCheck } from '../../client/blocks.ts'
import { clientError, GrandlivreError } from '../../client/errors.ts'
import type { Grandlivre } from '../../client/grandlivre.ts'
import { idOf, lastLineOf, WholeLines } from '../../client/lines.ts'
import type { MovementSelection } from '../../client/selection.ts'
import { type Compression, compressionOf, contentOf } from './compression.ts'
import { type Marks, nothingYet, openPart, type PartFile, type Source } from './part-file.ts'
import { beginning, type Checkpoint, createPieceWriter } from './piece-writer.ts'

export interface Order {
  out: string
  selection: MovementSelection
  source: Source
  /** Discards the unfinished file of another pull. */
  force: boolean
  encoding: 'identity' | 'gzip' | 'zstd' | undefined
}

export interface Surroundings {
  ledger: Grandlivre
  terminal: Terminal
  signal: AbortSignal
}

export interface Pulled {
  rows: number
  /** Of the content, before the file's compression. */
  bytes: number
  fileBytes: number
  /** SHA-256 of the content, hexadecimal. */
  sha256: string
  cursor: string
  provedBy: 'trailers' | 'blocks'
  /** Bytes that crossed the network in this run. */
  wireBytes: number
  connections: number
}

/** Times that a pull begins before it gives up, because its file could not be proven. */
const beginningsMax = 5

/**
 * @throws {Failure} if the file cannot be written, or not be proven
 * @throws {GrandlivreError} for what the service or the network did
 */
export async function pullMovements(order: Order, surroundings: Surroundings): Promise<Pulled> {
  const compression = compressionOf(order.out)
  const part = await openPart(order.out, order.source, order.force)
  try {
    let start = part.start
    for (let beginnings = 1; ; beginnings += 1) {
      const proven = await attempt(part, start, compression, order, surroundings)
      if (proven) {
        const { rows, bytes, sha256, cursor, provedBy, wireBytes, connections } = proven
        const fileBytes = await part.finish()
        return { rows, bytes, fileBytes, sha256: sha256!, cursor, provedBy, wireBytes, connections }
      }
      await part.restart()
      start = nothingYet
      if (beginnings === beginningsMax)
        throw new Failure(
          `The file could not be proven in ${beginningsMax} attempts`,
          'The lines above say why. If the ledger changed each time, pull when it changes less.',
        )
    }
  } catch (error) {
    // What is interrupted goes on with its part, however short that is.
    if (!surroundings.signal.aborted) await part.removeEmpty()
    throw error
  } finally {
    await part.file.close()
  }
}

/** Receives and proves. @returns undefined if the pull has to begin again, after saying why */
async function attempt(
  part: PartFile,
  start: Marks,
  compression: Compression,
  order: Order,
  surroundings: Surroundings,
): Promise<Received | undefined> {
  try {
    const received = await receive(part, start, compression, order, surroundings)
    if (received.isProven) return received
    return await prove(received, part.path, compression, order, surroundings)
  } catch (error) {
    // A later run could not prove these bytes, either.
    if (!(error instanceof GrandlivreError && error.code === 'NOT-PROVEN')) throw error
    surroundings.terminal.note(`${error.message}: beginning again`)
    return undefined
  }
}

interface Received extends Omit<Pulled, 'fileBytes' | 'sha256'> {
  /** Undefined if an earlier run wrote a part of the file. */
  sha256: string | undefined
  /** Whether the trailers of one answer prove all that was written. */
  isProven: boolean
}

/** Writes what is missing of the file. */
async function receive(
  part: PartFile,
  start: Marks,
  compression: Compression,
  { selection, encoding }: Order,
  { ledger, terminal, signal }: Surroundings,
): Promise<Received> {
  const began = performance.now()
  const { after, etag, rows } = start
  if (after !== null) terminal.note(`Going on after ${countText(rows)} movements of an earlier run`)
  let hash = after === null ? createHash('sha256') : undefined
  const writerFrom = (checkpoint: Checkpoint) =>
    createPieceWriter(part.file, compression, checkpoint, (written) =>
      part.record({ ...written, etag: progress.etag ?? '', cursor: progress.cursor ?? '' }),
    )
  const stream = ledger.movements(selection, {
    signal,
    ...(encoding === undefined ? {} : { encoding }),
    ...(after === null ? {} : { resume: { after, etag, rows } }),
    onRestart: async (reason) => {
      terminal.note(`${reason}: beginning again`)
      await writer.settle()
      await part.restart()
      hash = createHash('sha256')
      writer = writerFrom(beginning)
      kept = beginning
      last = undefined
    },
  })
  const { progress } = stream
  let writer = writerFrom(start)
  let kept: Pick<Checkpoint, 'rows' | 'after'> = { rows, after }
  let last: Uint8Array | undefined
  const mark = (chunk: Uint8Array) => ({ rows: progress.rows, after: idOf(lastLineOf(chunk)) })
  try {
    for await (const chunk of stream.chunks()) {
      hash?.update(chunk)
      await writer.add(chunk, () => mark(chunk))
      last = chunk
      const rate = rateText(progress.bytes, performance.now() - began)
      terminal.progress(`${countText(progress.rows)} movements, ${sizeText(writer.contentBytes())}, ${rate}`)
    }
    await writer.end(last === undefined ? kept : mark(last))
  } finally {
    await writer.settle()
  }
  const { cursor = '', provedBy, wireBytes, connections } = progress
  return {
    ...{ rows: progress.rows, bytes: writer.contentBytes(), sha256: hash?.digest('hex'), cursor },
    ...{ provedBy: 'trailers', wireBytes, connections },
    isProven: hash !== undefined && provedBy === 'trailers',
  }
}

/**
 * Reads the file again.
 * @returns undefined if the pull has to begin again, after saying why
 * @throws {GrandlivreError} NOT-PROVEN if the file is not what the ledger has
 */
async function prove(
  received: Received,
  path: string,
  compression: Compression,
  { selection }: Order,
  { ledger, terminal, signal }: Surroundings,
): Promise<Received | undefined> {
  const { blocks, cursor } = await ledger.blocks(selection, { signal })
  if (cursor !== received.cursor) {
    terminal.note('The ledger changed before the file was compared with it: beginning again')
    return undefined
  }
  const show = (bytes: number) => {
    signal.throwIfAborted()
    terminal.progress(`Comparing the file with the ledger: ${sizeText(bytes)}`, bytes / received.bytes)
  }
  try {
    const sha256 = await proveFile(path, compression, blocks, show)
    return { ...received, sha256, provedBy: 'blocks', isProven: true }
  } catch (error) {
    if (signal.aborted || error instanceof GrandlivreError) throw error
    // Compressed bytes that are damaged.
    terminal.note(`${(error as Error).message}: beginning again`)
    return undefined
  }
}

/**
 * Reads a pulled file again, and compares it with the blocks of the ledger (docs/spec/changes.md#blocks).
 * @param onBytes called with the content bytes read so far
 * @returns SHA-256 of the content, hexadecimal
 * @throws {GrandlivreError} NOT-PROVEN if a line is not the ledger's, missing, or one too many
 */
async function proveFile(
  path: string,
  compression: Compression,
  blocks: readonly Block[],
  onBytes: (bytes: number) => void,
): Promise<string> {
  const hash = createHash('sha256')
  const check = new BlockCheck(blocks)
  const lines = new WholeLines()
  let bytes = 0
  for await (const chunk of contentOf(path, compression)) {
    hash.update(chunk)
    bytes += chunk.length
    onBytes(bytes)
    const whole = lines.push(chunk)
    if (whole) check.pass(whole)
  }
  if (lines.restBytes > 0 || !check.isComplete)
    throw clientError('NOT-PROVEN', `${path} has fewer movements than the ledger`)
  return hash.digest('hex')
}
