import { limits } from '../config.ts'

/**
 * Returns the buffer of the next chunk. Its length is the maximum size of a chunk, unless a single item needs more
 * bytes: then the item gets a chunk of its own.
 */
export type ChunkBuffer = (bytesNeeded?: number) => Uint8Array<ArrayBuffer>

/** One buffer for all chunks: only where each chunk has been copied before the next is rendered. */
export function sameChunkBuffer(): ChunkBuffer {
  let buffer = new Uint8Array(limits.chunkBytes)
  return (bytesNeeded = 0) => {
    if (buffer.length < bytesNeeded) buffer = new Uint8Array(bytesNeeded)
    return buffer
  }
}
