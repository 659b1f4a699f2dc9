/**
 * Merges the entries and movements of a snapshot into the entry lines of a TRA file, chunk by chunk. Both streams
 * ascend by entry id. Movements of other entries are skipped; entries without movements have no line.
 */
import type { CopyRows } from '../../../db/copy-rows.ts'
import { readId } from '../../../formats/text-bytes.ts'
import type { TraDictionary } from '../../../formats/tra/dictionary.ts'
import {
  type EntryLines,
  isDebitLine,
  traEntryOffsets,
  traMovementOffsets,
} from '../../../formats/tra/entry-lines.ts'
import { type PieceRule, type PieceType, typeByLine, typeOtherwise } from '../../../formats/tra/piece-type.ts'
import type { ChunkBuffer } from '../../chunk-buffer.ts'
import type { Tally } from '../count-chunks.ts'

const { entry_id: ofEntry, account_id: account, debit, credit } = traMovementOffsets
const { id, journal_id: journal } = traEntryOffsets

/**
 * The first line of an entry already contains the type of document, but a much later line may decide it. So rows are
 * read ahead and held until the type is known: at most this many bytes, about 150,000 movements. In a larger entry,
 * only the held rows decide.
 */
const heldBytesMax = 16 * 1024 * 1024

/** Where chunks end depends only on the rows. A movement and its shares are in one chunk. */
export async function* renderTraEntries(
  entries: CopyRows,
  movements: CopyRows,
  lines: EntryLines,
  dictionary: TraDictionary,
  buffer: ChunkBuffer,
  tally: Tally,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  // The first row takes a buffer: a segment may have none, and each buffer must become a chunk.
  let out: Uint8Array<ArrayBuffer> = new Uint8Array()
  let at = 0
  let row = 0
  while (await entries.fill()) {
    for (let base = 0, end = entries.count * entries.stride; base < end; base += entries.stride) {
      const entryId = readId(entries.bytes, entries.fields[base + id]!, entries.fields[base + id + 1]! - 1)
      for (let isStarted = false; ; ) {
        if (row === movements.count) {
          row = 0
          if (!(await movements.fill())) break
        }
        const belongsTo = entryOf(movements, row)
        if (belongsTo > entryId) break
        if (belongsTo < entryId) {
          row++
          continue
        }
        if (!isStarted) {
          const rule = ruleOf(entries, base, dictionary)
          let type = rule === 'other' ? 'OD' : lookAhead(rule, movements, row, dictionary, false)
          while (type === undefined) {
            const isAll = movements.bytes.length > heldBytesMax || !(await movements.extend(row))
            if (!isAll) row = 0
            type = lookAhead(rule, movements, row, dictionary, isAll)
          }
          lines.setEntry(entries.bytes, entries.fields, base, type)
          tally.entries++
          isStarted = true
        }
        const { bytes, fields } = movements
        const from = row * movements.stride
        const bytesMax = lines.bytesMax(fields, from)
        if (at + bytesMax > out.length) {
          if (at > 0) yield out.subarray(0, at)
          out = buffer(bytesMax)
          at = 0
        }
        at = lines.write(out, at, bytes, fields, from)
        tally.add(bytes, fields, from + debit, from + credit)
        row++
      }
    }
  }
  // Movements after the last entry are not in the file, but must be read to free the connection.
  while (await movements.fill());
  if (at > 0) yield out.subarray(0, at)
}

function entryOf({ bytes, fields, stride }: CopyRows, row: number): number {
  const base = row * stride
  return readId(bytes, fields[base + ofEntry]!, fields[base + ofEntry + 1]! - 1)
}

function ruleOf({ bytes, fields }: CopyRows, base: number, { journals }: TraDictionary): PieceRule {
  const journalId = readId(bytes, fields[base + journal]!, fields[base + journal + 1]! - 1)
  return journals.get(journalId)?.rule ?? 'other'
}

/**
 * The type of the entry whose movements begin at row `first`; undefined if the rows of the batch do not decide it and
 * more may follow.
 */
function lookAhead(
  rule: PieceRule,
  movements: CopyRows,
  first: number,
  { accounts }: TraDictionary,
  isAll: boolean,
): PieceType | undefined {
  const { bytes, fields, stride, count } = movements
  const entryId = entryOf(movements, first)
  let hasCustomer = false
  for (let row = first; row < count; row++) {
    if (entryOf(movements, row) !== entryId) return typeOtherwise(rule, hasCustomer)
    const base = row * stride
    const accountId = readId(bytes, fields[base + account]!, fields[base + account + 1]! - 1)
    const party = accounts.get(accountId)?.party
    const type = typeByLine(rule, party, isDebitLine(bytes, fields, base))
    if (type) return type
    hasCustomer ||= party === 'customer'
  }
  return isAll ? typeOtherwise(rule, hasCustomer) : undefined
}
