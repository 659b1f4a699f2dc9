import { limits } from '../config.ts'

/**
 * Returns the buffer of the next chunk, to be called once for each. Its length is the maximum size of the chunk: the
 * usual one, or more if the first item of the chunk needs more.
 */
export type ChunkBuffer = (bytesNeeded?: number) => Uint8Array<ArrayBuffer>

/**
 * One buffer for all chunks: only where each chunk is used up before the next is rendered. After a large item it
 * keeps that size, and later chunks may be as large.
 */
export function sameChunkBuffer(): ChunkBuffer {
  let buffer = new Uint8Array(limits.chunkBytes)
  return (bytesNeeded = 0) => {
    if (buffer.length < bytesNeeded) buffer = new Uint8Array(bytesNeeded)
    return buffer
  }
}

/**
 * Two buffers in turn: where each chunk is used up before the next but one is rendered. A second call for the same
 * chunk would return the buffer of the chunk before it, which is still being written.
 */
export function twoChunkBuffers(): ChunkBuffer {
  const buffers = [sameChunkBuffer(), sameChunkBuffer()] as const
  let turn: 0 | 1 = 0
  return (bytesNeeded) => {
    turn = turn === 0 ? 1 : 0
    return buffers[turn](bytesNeeded)
  }
}
