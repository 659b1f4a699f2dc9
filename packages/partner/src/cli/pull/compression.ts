/** How a file is compressed, which its name says: `.gz`, `.zst`, or neither. */
import { createReadStream } from 'node:fs'
import { PassThrough, pipeline, type Transform } from 'node:stream'
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { localFailure } from '../exit-codes.ts'

export interface Compression {
  /** One piece of the file: a gzip member or a zstd frame. Pieces one after the other are a valid file. */
  pack(content: Uint8Array): Promise<Uint8Array>
  unpack(): Transform
}

/** Larger than by default, which saves a quarter of the time. */
const readBytes = 1024 * 1024
const chunkSize = 256 * 1024

export function compressionNamed(path: string): 'gzip' | 'zstd' | undefined {
  if (path.endsWith('.gz')) return 'gzip'
  return path.endsWith('.zst') ? 'zstd' : undefined
}

/** @throws {Failure} if the name ends in .zst, and this Node has no zstd */
export function compressionOf(path: string): Compression | undefined {
  const name = compressionNamed(path)
  if (name === undefined) return undefined
  if (name === 'gzip')
    return {
      pack: promisify<zlib.InputType, Buffer>(zlib.gzip),
      unpack: () => zlib.createGunzip({ chunkSize }),
    }
  const zstdCompress = zlib.zstdCompress as typeof zlib.zstdCompress | undefined
  if (zstdCompress === undefined)
    throw localFailure(
      `Node ${process.versions.node} has no zstd, which ${path} needs`,
      'Use Node 22.15 or newer (23.8 in the 23 line), or let the name end in .gz.',
    )
  return {
    pack: promisify<zlib.InputType, Buffer>(zstdCompress),
    unpack: () => zlib.createZstdDecompress({ chunkSize }),
  }
}

/** The content of a file, decompressed, chunk by chunk. */
export function contentOf(path: string, compression: Compression | undefined): AsyncIterable<Uint8Array> {
  const file = createReadStream(path, { highWaterMark: readBytes })
  if (compression === undefined) return file
  // An error of the file destroys the decompression, whose reader then gets it.
  return pipeline(file, compression.unpack(), new PassThrough(), () => {})
}
