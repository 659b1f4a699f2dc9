/** Reads a pulled file again, and compares it with the blocks of the ledger (docs/spec/changes.md#blocks). */
import { createHash } from 'node:crypto'
import { type Block, BlockCheck } from '../../client/blocks.ts'
import { clientError } from '../../client/errors.ts'
import { WholeLines } from '../../client/lines.ts'
import { type Compression, contentOf } from './compression.ts'

/**
 * @param onBytes called with the content bytes read so far
 * @returns SHA-256 of the content, hexadecimal
 * @throws {GrandlivreError} NOT-PROVEN if a line is not the ledger's, missing, or one too many
 */
export async function proveFile(
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
