/**
 * The first line of an entry in a TRA file already has the type of document, but a much later movement may decide it.
 * So movements are read ahead and held until the type is known.
 */
import type { CopyRows } from '../../../db/copy-rows.ts'
import { idOf } from '../../../formats/text-bytes.ts'
import type { TraDictionary } from '../../../formats/tra/dictionary.ts'
import {
  type EntryLines,
  isDebitLine,
  traEntryOffsets,
  traMovementOffsets,
} from '../../../formats/tra/entry-lines.ts'
import { type PieceRule, type PieceType, typeByLine, typeOtherwise } from '../../../formats/tra/piece-type.ts'
import type { LineFormat } from '../render-lines.ts'

const { entry_id: owner, account_id: account } = traMovementOffsets
const { journal_id: journal } = traEntryOffsets

/** About 150,000 movements. In a larger entry, only the movements held decide. */
const heldBytesMax = 16 * 1024 * 1024

export function traEntrySetter(lines: EntryLines, dictionary: TraDictionary): LineFormat['setEntry'] {
  return (entries, base, movements, row) => {
    const journalId = idOf(entries, base + journal)
    const rule = dictionary.journals.get(journalId)?.rule ?? 'other'
    const type = rule === 'other' ? 'OD' : lookAhead(rule, movements, row, dictionary, false)
    if (type === undefined)
      return readOn(rule, movements, row, dictionary, (decided) => lines.setEntry(entries, base, decided))
    lines.setEntry(entries, base, type)
    return undefined
  }
}

/** Reads movements until they decide the type. @returns the row where the entry's first movement is then */
async function readOn(
  rule: PieceRule,
  movements: CopyRows,
  row: number,
  dictionary: TraDictionary,
  set: (type: PieceType) => void,
): Promise<number> {
  for (;;) {
    const isAll = movements.bytes.length > heldBytesMax || !(await movements.extend(row))
    if (!isAll) row = 0
    const type = lookAhead(rule, movements, row, dictionary, isAll)
    if (type === undefined) continue
    set(type)
    return row
  }
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
  const { stride, count } = movements
  const entryId = idOf(movements, first * stride + owner)
  let hasCustomer = false
  for (let row = first; row < count; row++) {
    const base = row * stride
    if (idOf(movements, base + owner) !== entryId) return typeOtherwise(rule, hasCustomer)
    const party = accounts.get(idOf(movements, base + account))?.party
    const type = typeByLine(rule, party, isDebitLine(movements, base))
    if (type) return type
    hasCustomer ||= party === 'customer'
  }
  return isAll ? typeOtherwise(rule, hasCustomer) : undefined
}
