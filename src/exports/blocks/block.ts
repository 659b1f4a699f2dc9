/**
 * Digests of movements by consecutive ranges of entry ids: what a client compares with its copy
 * (docs/spec/changes.md#blocks). Pure.
 */
import { createHash } from 'node:crypto'
import type { JsonForm } from '../../formats/file-formats.ts'
import { framings } from '../render/framing.ts'
import { picksEntries, type Selection } from '../selection.ts'
import { tagOf } from '../tag.ts'

/** Reaches to before the first id of the next block; the last one to the greatest id. */
export interface Block {
  /** The lowest entry id of the range. The first block begins at 0. */
  first: number
  /** Its movements. */
  rows: number
  /** Of their lines in NDJSON, or of their rows of COPY, hexadecimal. */
  sha256: string
}

/** What an answer says of its blocks before its body. */
export interface BlocksHead {
  /** The SHA-256 of all digests as bytes, hexadecimal. */
  digest: string
  /** Names the blocks if they depend on more than the selection and the ledger; part of the ETag. */
  bounds: string | undefined
}

export type KeptSelection = Selection & { exerciceId: string }

/** Whether the digests of a selection are kept: those of the validated movements of one exercice. */
export function isKept(selection: Selection): selection is KeptSelection {
  const { exerciceId, draft, accountRoots, lettering } = selection
  return (
    exerciceId !== undefined &&
    draft === false &&
    accountRoots.length === 0 &&
    lettering === undefined &&
    !picksEntries(selection)
  )
}

export function headOf(blocks: readonly Block[], selection: Selection): BlocksHead {
  // Kept blocks have bounds that depend on their past.
  return { digest: digestOf(blocks), bounds: isKept(selection) ? tagOf(blocks) : undefined }
}

/** The SHA-256 of all digests as bytes, hexadecimal. */
export function digestOf(blocks: readonly Pick<Block, 'sha256'>[]): string {
  const digest = createHash('sha256')
  for (const { sha256 } of blocks) digest.update(sha256, 'hex')
  return digest.digest('hex')
}

/** As answers have them, with both ends of their ranges. */
export function blockItems(blocks: readonly Block[]) {
  return blocks.map(({ first, rows, sha256 }, i) => {
    const next = blocks[i + 1]
    const to = next ? next.first - 1 : Number.MAX_SAFE_INTEGER
    return { from: String(first), to: String(to), rows, sha256 }
  })
}

/** The body of an answer. */
export function blocksText(blocks: readonly Block[], form: JsonForm): string {
  const { open, separator, terminator, close } = framings[form]
  const items = blockItems(blocks).map((item) => JSON.stringify(item) + terminator)
  return open + items.join(separator) + close
}
