import type { ChunkBuffer } from '../../../src/exports/chunks.ts'

/** A new buffer for each chunk. @param chunkBytes maximum size of a chunk that holds several items */
export function plainBuffer(chunkBytes = 256 * 1024): ChunkBuffer {
  return (bytesNeeded = 0) => new Uint8Array(Math.max(chunkBytes, bytesNeeded))
}
