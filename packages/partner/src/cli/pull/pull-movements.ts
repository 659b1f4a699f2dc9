/**
 * Pulls movements into a file that is whole or absent. After a kill the next run continues after the last piece that
 * was written.
 *
 * The file is proven in one of two ways. If one connection brought all of it, the library compares the trailers with
 * what it gave out. If several connections or runs wrote it, the file is read again and compared with the ledger's
 * blocks at its cursor.
 */
import { createHash } from 'node:crypto'
import { countText, rateText, sizeText } from '../../../../terminal/src/amounts.ts'
import { Failure } from '../../../../terminal/src/command-errors.ts'
import type { Terminal } from '../../../../terminal/src/terminal.ts'
import { BlockCheck } from '../../client/blocks.ts'
import { clientError, GrandlivreError } from '../../client/errors.ts'
import type { Grandlivre } from '../../client/grandlivre.ts'
import { idOf, lastLineOf, WholeLines } from '../../client/lines.ts'
import type { MovementSelection } from '../../client/selection.ts'
import { openPart, type PartFile, type PullSource } from './part-file.ts'

/** What to pull, and into which file. */
export interface MovementPull {
  out: string
  selection: MovementSelection
  source: PullSource
  /** Discards the unfinished file of another pull. */
  force: boolean
  encoding: 'identity' | 'gzip' | 'zstd' | undefined
  ledger: Grandlivre
  terminal: Terminal
  signal: AbortSignal
}

export type PulledMovements = Awaited<ReturnType<typeof pullMovements>>

/** How many times a pull begins before it gives up because its file could not be proven. */
const beginningsMax = 5

/**
 * @throws {Failure} if the file cannot be written or proven
 * @throws {GrandlivreError} for errors of the service and the network
 */
export async function pullMovements(pull: MovementPull) {
  const { out, source, force, terminal, signal } = pull
  const part = await openPart(out, source, force)
  try {
    for (let beginnings = 1; beginnings <= beginningsMax; beginnings += 1) {
      try {
        const received = await receive(pull, part)
        const sha256 = received.sha256 ?? (await prove(pull, part, received))
        const provedBy: 'blocks' | 'trailers' = received.sha256 === undefined ? 'blocks' : 'trailers'
        const { rows, bytes, cursor, wireBytes, connections } = received
        const fileBytes = await part.finish()
        return { rows, bytes, fileBytes, sha256, cursor, provedBy, wireBytes, connections }
      } catch (error) {
        // A later run could not prove these bytes either, so they are not kept.
        if (!(error instanceof GrandlivreError && error.code === 'NOT-PROVEN')) throw error
        terminal.note(`${error.message}: beginning again`)
        await part.restart()
      }
    }
    throw new Failure(
      `The file could not be proven in ${beginningsMax} attempts`,
      'The lines above say why. If the ledger changed each time, pull when it changes less.',
    )
  } catch (error) {
    // An interrupted pull keeps its unfinished file, however short.
    if (!signal.aborted) await part.removeEmpty()
    throw error
  } finally {
    await part.close()
  }
}

/**
 * Writes what the file still lacks.
 * @returns `bytes` of the content; `wireBytes` that the network carried in this run; and `sha256` of the content, only
 *   if the trailers of a single answer prove the whole file
 */
async function receive({ selection, encoding, ledger, terminal, signal }: MovementPull, part: PartFile) {
  const began = performance.now()
  const { after, etag, rows } = part.reached()
  if (after !== null) terminal.note(`Going on after ${countText(rows)} movements of an earlier run`)
  let hash = after === null ? createHash('sha256') : undefined
  let writer = part.writer()
  let last: Uint8Array | undefined
  const stream = ledger.movements(selection, {
    signal,
    encoding,
    resume: after === null ? undefined : { after, etag, rows },
    onRestart: async (reason) => {
      terminal.note(`${reason}: beginning again`)
      await writer.arrived()
      await part.restart()
      hash = createHash('sha256')
      writer = part.writer()
      last = undefined
    },
  })
  const { progress } = stream
  const mark = () => ({
    rows: progress.rows,
    after: last === undefined ? part.reached().after : idOf(lastLineOf(last)),
    etag: progress.etag ?? '',
    cursor: progress.cursor ?? '',
  })
  try {
    for await (const chunk of stream.chunks()) {
      hash?.update(chunk)
      last = chunk
      await writer.add(chunk, mark)
      const rate = rateText(progress.bytes, performance.now() - began)
      terminal.progress(`${countText(progress.rows)} movements, ${sizeText(writer.contentBytes())}, ${rate}`)
    }
    await writer.end(mark())
  } finally {
    await writer.arrived()
  }
  const { cursor = '', provedBy, wireBytes, connections } = progress
  const sha256 = provedBy === 'trailers' ? hash?.digest('hex') : undefined
  return { rows: progress.rows, bytes: writer.contentBytes(), sha256, cursor, wireBytes, connections }
}

/**
 * Reads the file again and compares it with the blocks of the ledger (docs/spec/changes.md#blocks).
 * @returns SHA-256 of the content, hexadecimal
 * @throws {GrandlivreError} NOT-PROVEN if a line differs from the ledger, is missing, or is not in the ledger
 */
async function prove(
  { selection, ledger, terminal, signal }: MovementPull,
  part: PartFile,
  received: { bytes: number; cursor: string },
): Promise<string> {
  const { blocks, cursor } = await ledger.blocks(selection, { signal })
  if (cursor !== received.cursor)
    throw clientError('NOT-PROVEN', 'The ledger changed before the file was compared with it')
  const hash = createHash('sha256')
  const check = new BlockCheck(blocks)
  const lines = new WholeLines()
  let bytes = 0
  try {
    for await (const chunk of part.content()) {
      signal.throwIfAborted()
      hash.update(chunk)
      bytes += chunk.length
      terminal.progress(`Comparing the file with the ledger: ${sizeText(bytes)}`, bytes / received.bytes)
      const whole = lines.push(chunk)
      if (whole) check.pass(whole)
    }
  } catch (cause) {
    if (signal.aborted || cause instanceof GrandlivreError) throw cause
    // The compressed bytes are damaged.
    throw clientError('NOT-PROVEN', (cause as Error).message, { cause })
  }
  if (lines.restBytes > 0 || !check.isComplete)
    throw clientError('NOT-PROVEN', `${part.path} has fewer movements than the ledger`)
  return hash.digest('hex')
}
