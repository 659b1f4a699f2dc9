/**
 * Refuses to compare what is not the same: every way's whole answer is read once, unpacked, and hashed. This is also
 * the round that warms everything up, and is not counted.
 */
import { createHash } from 'node:crypto'
import { finished } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { download } from './client.ts'
import type { ReportProgress } from './progress.ts'
import { databaseJsonName, oursName, type Way } from './ways.ts'

export interface Content {
  /** Movements in the answer, as its trailer says. */
  rows: number
  /** Of the answers by the name of the way, uncompressed. */
  bytes: Record<string, number>
}

interface Hashed {
  bytes: number
  sha256: string
  trailers: NodeJS.Dict<string>
}

/** @throws {Error} naming the way whose answer differs */
export async function checkSameContent(ways: Way[], progress: ReportProgress): Promise<Content> {
  const content: Content = { rows: 0, bytes: {} }
  let expected = ''
  for (const [index, way] of ways.entries()) {
    progress(`warming up and comparing: ${way.name}`, index / ways.length)
    if (!way.address) {
      await way.run()
      continue
    }
    const { bytes, sha256, trailers } = await hashAnswer(way)
    content.bytes[way.name] = bytes
    if (way.name === oursName) {
      expected = sha256
      content.rows = Number(trailers['x-row-count'])
    }
    // A line each is another text; its own trailer vouches for it.
    const wanted = way.address.headers['Accept'] === undefined ? expected : trailers['x-content-sha256']
    if (sha256 !== wanted || (trailers['x-content-sha256'] ?? sha256) !== sha256)
      throw new Error(
        `The answers differ, so there is nothing to compare: ${way.name} gives ${sha256}, not ${wanted}`,
      )
  }
  return content
}

async function hashAnswer({ name, address }: Way): Promise<Hashed> {
  const { url, headers } = address!
  if (name === databaseJsonName) return hashLines(url, headers)
  const hash = createHash('sha256')
  let bytes = 0
  const take = (chunk: Buffer): void => {
    bytes += chunk.length
    hash.update(chunk)
  }
  const unpack = unpacker(headers['Accept-Encoding'])
  unpack?.on('data', take)
  const { trailers } = await download(url, headers, unpack ? (chunk) => void unpack.write(chunk) : take)
  if (unpack) {
    unpack.end()
    await finished(unpack)
  }
  return { bytes, sha256: hash.digest('hex'), trailers }
}

function unpacker(encoding: string | undefined) {
  if (encoding === 'zstd') return createZstdDecompress()
  return encoding === 'gzip' ? createGunzip() : undefined
}

/**
 * The database writes blanks between tokens, so its movements are parsed and written again, one by one: what is left
 * to differ is the content. Each is on a line of its own, all but the first behind a comma.
 */
async function hashLines(url: string, headers: Record<string, string>): Promise<Hashed> {
  const hash = createHash('sha256')
  const decoder = new TextDecoder()
  let rest = ''
  let bytes = 0
  const takeLine = (line: string): void => {
    const json = line.replace(/^[[,]/, '').replace(/\]$/, '')
    if (json !== '') hash.update(line[0] + JSON.stringify(JSON.parse(json)))
  }
  const { trailers } = await download(url, headers, (chunk) => {
    bytes += chunk.length
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) takeLine(line)
  })
  takeLine(rest)
  return { bytes, sha256: hash.update(']').digest('hex'), trailers }
}
