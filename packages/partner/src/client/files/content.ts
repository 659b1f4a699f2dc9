/** What a compressed file contains, read with one chunk in memory at a time. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
// Node 20 has no zstd: the name itself could not be imported there.
import * as zlib from 'node:zlib'

export type Compression = 'gzip' | 'zstd'

/** The first bytes of a file. No format of the service begins so without compression. */
const beginnings: Record<Compression, string> = { gzip: '1f8b', zstd: '28b52ffd' }

export function canDecompress(compression: Compression): boolean {
  return compression === 'gzip' || typeof zlib.createZstdDecompress === 'function'
}

export async function compressionOf(file: string): Promise<Compression | undefined> {
  const handle = await open(file, 'r')
  try {
    const { buffer } = await handle.read(new Uint8Array(4), 0, 4, 0)
    const hex = Buffer.from(buffer).toString('hex')
    return (Object.keys(beginnings) as Compression[]).find((name) => hex.startsWith(beginnings[name]))
  } finally {
    await handle.close()
  }
}

/**
 * @param compression one that `canDecompress`
 * @returns bytes and SHA-256 (hexadecimal) of the content
 * @throws {Error} of zlib if the file is damaged, the reason of the signal
 */
export async function readContent(file: string, compression: Compression, signal: AbortSignal | undefined) {
  const hash = createHash('sha256')
  let bytes = 0
  await pipeline(
    createReadStream(file),
    compression === 'gzip' ? zlib.createGunzip() : zlib.createZstdDecompress(),
    async (content: AsyncIterable<Uint8Array>) => {
      for await (const chunk of content) {
        hash.update(chunk)
        bytes += chunk.length
      }
    },
    signal ? { signal } : {},
  )
  return { bytes, sha256: hash.digest('hex') }
}
