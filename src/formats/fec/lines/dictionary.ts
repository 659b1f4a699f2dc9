/**
 * Rendered fields, by id, of the accounts and journals that lines cite. A folder has few of them, and every line
 * repeats some.
 */
import { Buffer } from 'node:buffer'
import { ascii } from '../../ascii.ts'
import type { FiledAccount } from '../../rows.ts'
import { pieceOf, renderedById } from '../../text-bytes.ts'
import { isMandatory, type StandardColumn } from '../columns.ts'
import { type FieldWriter, fieldBytes } from './field-writer.ts'

const { tab } = ascii

export function renderFecDictionary(
  journals: readonly { id: string; code: string; name: string }[],
  accounts: readonly FiledAccount[],
  writer: FieldWriter,
) {
  return {
    /** JournalCode and JournalLib. */
    journals: renderedById(journals, ({ code, name }) =>
      fieldsOf({ JournalCode: code, JournalLib: name }, writer),
    ),
    /** CompteNum to CompAuxLib: the values that an imported FEC gave, where it gave any. */
    accounts: renderedById(accounts, ({ number, name, filedNumber, filedName, ...auxiliary }) =>
      fieldsOf(
        {
          CompteNum: filedNumber ?? number,
          CompteLib: filedName ?? name,
          CompAuxNum: auxiliary.auxiliaryNumber ?? '',
          CompAuxLib: auxiliary.auxiliaryName ?? '',
        },
        writer,
      ),
    ),
  }
}

export type FecDictionary = ReturnType<typeof renderFecDictionary>

/** @param texts the text of each column, in the order of the line */
function fieldsOf(texts: Partial<Record<StandardColumn, string>>, writer: FieldWriter) {
  /** The position at which each field begins, then the position after the last tab. */
  const starts = [0]
  /** For each field, the number of replaced characters. */
  const replaced: number[] = []
  /** The number of mandatory fields without a value. */
  let blankFields = 0
  const fields = Object.entries(texts).map(([column, text]) => {
    const before = writer.replaced
    const bytes = fieldBytes(writer, text)
    starts.push(starts.at(-1)! + bytes.length + 1)
    replaced.push(writer.replaced - before)
    writer.replaced = before
    if (bytes.length === 0 && isMandatory(column)) blankFields++
    return Buffer.concat([bytes, Uint8Array.of(tab)])
  })
  const replacedInAll = replaced.reduce((sum, count) => sum + count, 0)
  return { ...pieceOf(Buffer.concat(fields)), starts, replaced, replacedInAll, blankFields }
}
/** Adjacent fields of a line, each with a tab after it. */
export type Fields = ReturnType<typeof fieldsOf>
