/** Reads the files of imports. */
import { createReadStream, type Stats } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { pipeline, type Readable } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'

/** @throws {Error} if the file does not exist, is not readable, or is not a regular file */
export async function statSource(file: string): Promise<Stats> {
  const stats = await stat(file).catch((cause: unknown) => {
    throw new Error(`The file ${file} cannot be read: check its path and permissions`, { cause })
  })
  if (!stats.isFile()) throw new Error(`${file} is not a regular file: save the ledger to a file first`)
  return stats
}

/** The bytes read so far, and the size of the file. Both count compressed bytes if the file is compressed. */
export interface ReadBytes {
  bytes: number
  bytesTotal: number
}

/** The number of bytes per read, which also sets the size of batches. */
const readBytes = 256 * 1024

const compressions = [
  { name: 'gzip', begins: Buffer.from([0x1f, 0x8b]), decompress: createGunzip },
  { name: 'zstd', begins: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), decompress: createZstdDecompress },
]

/**
 * Reads the bytes of a file. It decompresses the file if its first bytes are those of gzip or zstd, whatever its name.
 * @param onRead called after each chunk
 * @throws {Error} if the file cannot be read, or is compressed and damaged or incomplete
 */
export async function* readSource(
  file: string,
  onRead: (read: ReadBytes) => void = () => {},
): AsyncGenerator<Buffer> {
  const { size: bytesTotal } = await statSource(file)
  const compression = await compressionOf(file)
  const bytes = createReadStream(file, { highWaterMark: readBytes })
  const decompressor = compression?.decompress()
  // The reader of `content` gets the error of either stream.
  const content: Readable = decompressor === undefined ? bytes : pipeline(bytes, decompressor, () => {})
  try {
    for await (const chunk of content) {
      yield chunk
      onRead({ bytes: bytes.bytesRead, bytesTotal })
    }
    // The zstd decompressor ignores bytes that are not a frame, even a damaged frame after other frames.
    const rest = compression?.name === 'zstd' ? bytesTotal - decompressor!.bytesWritten : 0
    if (rest > 0)
      throw new Error(`The file ${file} is not a whole zstd file: its last ${rest} bytes are not zstd`)
  } catch (cause) {
    if (compression === undefined || !isOfZlib(cause)) throw cause
    throw new Error(`The file ${file} is not a whole ${compression.name} file: ${cause.message}`, { cause })
  }
}

async function compressionOf(file: string) {
  await using handle = await open(file)
  const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, 0)
  return compressions.find(({ begins }) => buffer.subarray(0, begins.length).equals(begins))
}

function isOfZlib(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && /^(?:Z_|ZSTD_)/.test(String(error.code))
}
