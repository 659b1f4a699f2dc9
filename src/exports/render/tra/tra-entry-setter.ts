/**
 * The first line of an entry in a TRA file already has the type of document, but a much later movement may decide it.
 * So movements are read ahead and held until the type is known.
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
import { idAt } from '../render-lines.ts'

const { entry_id: owner, account_id: account } = traMovementOffsets
const { journal_id: journal } = traEntryOffsets

/** About 150,000 movements. In a larger entry, only the movements held decide. */
const heldBytesMax = 16 * 1024 * 1024

/** Returns the `setEntry` of renderLines. */
export function traEntrySetter(
  entries: CopyRows,
  movements: CopyRows,
  lines: EntryLines,
  dictionary: TraDictionary,
): (base: number, row: number) => number | Promise<number> {
  const set = (base: number, type: PieceType) => lines.setEntry(entries.bytes, entries.fields, base, type)
  async function readOn(base: number, row: number, rule: PieceRule): Promise<number> {
    for (;;) {
      const isAll = movements.bytes.length > heldBytesMax || !(await movements.extend(row))
      if (!isAll) row = 0
      const type = lookAhead(rule, movements, row, dictionary, isAll)
      if (type === undefined) continue
      set(base, type)
      return row
    }
  }
  return (base, row) => {
    const rule = ruleOf(entries, base, dictionary)
    const type = rule === 'other' ? 'OD' : lookAhead(rule, movements, row, dictionary, false)
    if (type === undefined) return readOn(base, row, rule)
    set(base, type)
    return row
  }
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
  const entryId = idAt(movements, first, owner)
  let hasCustomer = false
  for (let row = first; row < count; row++) {
    if (idAt(movements, row, owner) !== entryId) return typeOtherwise(rule, hasCustomer)
    const base = row * stride
    const party = accounts.get(idAt(movements, row, account))?.party
    const type = typeByLine(rule, party, isDebitLine(bytes, fields, base))
    if (type) return type
    hasCustomer ||= party === 'customer'
  }
  return isAll ? typeOtherwise(rule, hasCustomer) : undefined
}
