/** What the name of a FEC says: whose ledger it is, and of which year. */
import { basename } from 'node:path'
import { parseDay } from '../../../formats/fec/fields.ts'

export interface FecFileName {
  /** Without folder and ending. */
  stem: string
  /** Nine digits of which one is not zero. */
  siren: string | undefined
  /**
   * What names the same ledger again: the digits before `FEC`; where they are all zeros (the company was made
   * unknown) the whole stem, which holds the year too. Undefined for a name in another form, such as ledger.txt:
   * anybody's file may be called so.
   */
  reference: string | undefined
  /** Last day of the fiscal year, `YYYY-MM-DD`. */
  end: string | undefined
}

/** The regulation asks for `<SIREN>FEC<last day of the year, YYYYMMDD>.txt`. */
export function readFileName(path: string): FecFileName {
  const stem = basename(path).replace(/\.[^.]*$/, '')
  const [, digits, day = ''] = /^(\d+)FEC(\d{8})/i.exec(stem) ?? []
  const isUnknown = digits !== undefined && /^0+$/.test(digits)
  const siren = digits !== undefined && /^\d{9}$/.test(digits) && !isUnknown ? digits : undefined
  return { stem, siren, reference: isUnknown ? stem : digits, end: parseDay(day) }
}
