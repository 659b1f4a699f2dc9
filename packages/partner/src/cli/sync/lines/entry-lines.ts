/**
 * Lines of entries (docs/spec/resources.md#entry), and the exact lines of movements that they stand for. A copy keeps the
 * lines of entries: they take a quarter less than those of movements, and say when an entry was validated. Blocks have the
 * digests of lines of movements, so these are put together again from the same bytes.
 */
import { Buffer } from 'node:buffer'
import { itemsOf, type Member, membersOf } from './members.ts'

/** Shares the memory of the bytes. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Each line of some whole lines, without its line feed. */
export function* linesOf(bytes: Uint8Array): Generator<Buffer> {
  const lines = bufferOf(bytes)
  let start = 0
  for (let end = lines.indexOf(10); end !== -1; end = lines.indexOf(10, start)) {
    yield lines.subarray(start, end)
    start = end + 1
  }
}

const beforeId = Buffer.from('{"producerId":"')

/** The id at the start of a line of an entry or a movement. */
export function idOfLine(line: Buffer): number {
  let id = 0
  for (let at = beforeId.length; at < line.length; at += 1) {
    const digit = line[at]! - 48
    if (digit < 0 || digit > 9) break
    id = id * 10 + digit
  }
  return id
}

/** Members of an entry that come in this order inside a movement. */
const inMovement = ['producerId', 'date', 'dueDate', 'currency', 'journal']
/** Members that only the lines of entries have. */
const ofEntriesAlone = new Set(['validationDate', 'ecritureNum'])
const afterValue = Buffer.from(',"entry":{')
const toProperties = Buffer.from(',"additionalProducerProperties":{')
const toAttachments = Buffer.from('},')
const brace = Buffer.from('}')
const comma = Buffer.from(',')
const lineFeed = Buffer.from('\n')

/** The NDJSON of the entry's movements as `/mad/movements` gives them, each line with its line feed. */
export function movementLines(entry: Buffer): Buffer[] {
  const members = new Map(membersOf(entry, 0).map((member) => [member.name, member]))
  const member = (name: string): Member => {
    const found = members.get(name)
    if (!found) throw new Error(`An entry of the ledger has no "${name}"`)
    return found
  }
  const bytesOf = ({ start, end }: Member): Buffer => entry.subarray(start, end)
  const properties = membersOf(entry, member('additionalProducerProperties').value)
    .filter(({ name }) => !ofEntriesAlone.has(name))
    .map(bytesOf)
  const shown = Buffer.concat([
    afterValue,
    ...joined(inMovement.map((name) => bytesOf(member(name)))),
    toProperties,
    ...joined(properties),
    toAttachments,
    bytesOf(member('attachments')),
    brace,
  ])
  return itemsOf(entry, member('movements').value).map(([start, end]) =>
    movementLine(entry, start, end, shown),
  )
}

function movementLine(entry: Buffer, start: number, end: number, shown: Buffer): Buffer {
  const members = membersOf(entry, start)
  const value = members.find(({ name }) => name === 'value')
  if (!value) throw new Error('A movement of the ledger has no "value"')
  const filed = members.find(({ name }) => name === 'filed')
  const rest = filed ? [entry.subarray(value.end, filed.start - 1), brace] : [entry.subarray(value.end, end)]
  return Buffer.concat([entry.subarray(start, value.end), shown, ...rest, lineFeed])
}

function joined(parts: Buffer[]): Buffer[] {
  return parts.flatMap((part, place) => (place === 0 ? [part] : [comma, part]))
}
