/**
 * Refuses to compare ways whose content differs: the whole response of each is read once, unpacked and
 * hashed. This is also the warm-up round, which is not counted.
 */
import { createHash } from 'node:crypto'
import { say } from './own-process.ts'
import { peers } from './peers/peers.ts'
import type { Way } from './ways.ts'

/** @throws {Error} naming the way whose answer differs from the first that has one */
export async function checkSameContent(ways: Way[]): Promise<void> {
  let expected: string | undefined
  for (const way of ways) {
    say(`warming up and comparing: ${way.name}`)
    if (!way.address) {
      await way.run()
      continue
    }
    const sha256 = await hashAnswer(way.name, way.address)
    expected ??= sha256
    if (sha256 !== expected)
      throw new Error(
        `The responses differ, so they cannot be compared: ${way.name} has ${sha256}, not ${expected}`,
      )
  }
}

/** SHA-256 of the response as one JSON array without white space between tokens. */
async function hashAnswer(name: string, { url, headers }: NonNullable<Way['address']>): Promise<string> {
  const hash = createHash('sha256')
  const { status, body } = await fetch(url, { headers: { 'Accept-Encoding': 'identity', ...headers } })
  if (status !== 200 || !body) throw new Error(`${url} answered ${status}`)
  if (headers['Accept'] === 'application/x-ndjson') {
    let separator = '['
    for await (const line of linesOf(body)) {
      hash.update(separator + line)
      separator = ','
    }
    hash.update(']')
  } else if (peers.some((peer) => peer.name === name && peer.hasBlanks)) {
    for await (const line of linesOf(body)) hash.update(withoutBlanks(line))
    hash.update(']')
  } else for await (const chunk of body) hash.update(chunk)
  return hash.digest('hex')
}

/**
 * A movement after `[` or after the comma that separates it from the one before; the last is followed by `]`.
 */
function withoutBlanks(line: string): string {
  const json = line.slice(1).replace(/\]$/, '')
  return json === '' ? '' : line[0] + JSON.stringify(JSON.parse(json))
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    yield* lines
  }
  if (rest !== '') yield rest
}
