/**
 * Refuses to compare ways whose content differs: the whole response of each is read once, unpacked and hashed by
 * the bench. This is also the warm-up round, which is not counted.
 */
import { createHash } from 'node:crypto'
import { say } from '../own-process.ts'
import { peers } from '../peers/peers.ts'
import type { Way } from '../rounds.ts'
import { joinedName, oursName, type Row } from '../rows.ts'

/** What was found to be the same, for one way. */
export interface Checked {
  name: string
  /**
   * What has the SHA-256 of the first one's body: its body (`bytes`), its body unpacked (`unpacked`), the array of
   * its lines (`lines`), or that of its movements, each parsed and written again (`values`). `rows`: nothing; only
   * their number is compared. `nothing`: not even that, because it reads drafts, too.
   */
  compared: 'bytes' | 'unpacked' | 'lines' | 'values' | 'rows' | 'nothing'
  /** Read and hashed: unpacked. Of the floor, those of the database's rows. */
  bytes: number
  sha256: string | null
}

interface Hashed extends Checked {
  sha256: string
}

/**
 * @param ways the first with an address is what the others are compared with
 * @throws {Error} naming the way whose answer differs
 */
export async function checkSameContent(ways: Way[]): Promise<Checked[]> {
  const checked: Checked[] = []
  let expected: Hashed | undefined
  for (const way of ways) {
    say(`warming up and comparing: ${way.name}`)
    if (!way.address) {
      const { bytes, rows } = await way.run()
      const compared = rows === null ? 'nothing' : 'rows'
      checked.push({ name: way.name, compared, bytes: bytes ?? 0, sha256: null })
      continue
    }
    const hashed = await hashAnswer(way.name, way.address)
    expected ??= hashed
    if (hashed.sha256 !== expected.sha256)
      throw new Error(
        `The responses differ, so they cannot be compared: ${way.name} has ${hashed.sha256}, not ${expected.sha256}`,
      )
    checked.push(hashed)
  }
  return checked
}

/**
 * Each round of a way must have transferred as many rows as the others, and what was compared: where that is its
 * bytes, as many of them, with the SHA-256 that the answer announces.
 * What files have in common, full-export.ts knows.
 * @throws {Error} naming the way and what it sent
 */
export function checkRounds(rows: Row[], checked: Checked[]): void {
  for (const { name, samples } of rows) {
    const compared = checked.find((way) => way.name === name)
    const [first] = samples as [Row['samples'][0]]
    const expected =
      compared?.compared === 'bytes' ? { bytes: compared.bytes, sha256: first.sha256 && compared.sha256 } : {}
    for (const sample of samples)
      for (const [what, value] of Object.entries({ rows: first.rows, ...expected })) {
        const sent = sample[what as 'rows' | 'bytes' | 'sha256']
        if (sent !== value) throw new Error(`${name}: ${what} is ${sent}, not ${value}`)
      }
  }
  const [joined, ours] = [joinedName, oursName].map((name) => rows.find((row) => row.name === name))
  if (joined === undefined) return
  const counts = [joined, ours].map((row) => row?.samples[0]?.rows)
  if (counts[0] !== counts[1])
    throw new Error(`${joinedName} reads ${counts[0]} rows, the export ${counts[1]}`)
}

/** SHA-256 of the response as one JSON array without white space between tokens. */
async function hashAnswer(name: string, { url, headers }: NonNullable<Way['address']>): Promise<Hashed> {
  const hash = createHash('sha256')
  const { status, body } = await fetch(url, { headers: { 'Accept-Encoding': 'identity', ...headers } })
  if (status !== 200 || !body) throw new Error(`${url} answered ${status}`)
  let bytes = 0
  const counted = body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.length
        controller.enqueue(chunk)
      },
    }),
  )
  let compared: Checked['compared'] = 'Accept-Encoding' in headers ? 'unpacked' : 'bytes'
  if (headers['Accept'] === 'application/x-ndjson') {
    compared = 'lines'
    let separator = '['
    for await (const line of linesOf(counted)) {
      hash.update(separator + line)
      separator = ','
    }
    hash.update(']')
  } else if (peers.some((peer) => peer.name === name && peer.hasBlanks)) {
    compared = 'values'
    for await (const line of linesOf(counted)) hash.update(withoutBlanks(line))
    hash.update(']')
  } else for await (const chunk of counted) hash.update(chunk)
  return { name, compared, bytes, sha256: hash.digest('hex') }
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

/** For standard output. */
export function checkedLines(checked: Checked[]): string[] {
  const [first] = checked.filter(({ sha256 }) => sha256 !== null)
  if (!first) return []
  const named = (kind: Checked['compared']) =>
    checked.filter(({ compared }) => compared === kind).map(({ name }) => name)
  const kinds: [Checked['compared'], string][] = [
    ['bytes', 'the same bytes'],
    ['unpacked', 'the same bytes once unpacked'],
    ['lines', 'the same bytes once its lines are joined'],
    ['values', 'the same movements, parsed and written again'],
    ['rows', 'only as many rows'],
    ['nothing', 'nothing, because it reads drafts, too'],
  ]
  return [
    `Checked before the rounds: ${first.bytes.toLocaleString('en')} bytes, SHA-256 ${first.sha256}`,
    ...kinds.flatMap(([kind, text]) => {
      const names = named(kind)
      return names.length === 0 ? [] : [`  ${text}: ${names.join('; ')}`]
    }),
  ]
}
