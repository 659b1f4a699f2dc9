/** Reads the company and the fiscal year from the name of a FEC. */
import { basename } from 'node:path'
import { parseDay } from '../../../formats/fec/fields.ts'

export interface FecFileName {
  /** Without folder and extensions. */
  stem: string
  /** Nine digits, not all zero. */
  siren: string | undefined
  /**
   * Identifies the same ledger again: the digits before `FEC` or, if they are all zero (an anonymized company), the
   * whole stem, which contains the year too. Undefined for any other form of name, such as ledger.txt: many files are
   * called that.
   */
  reference: string | undefined
  /** Last day of the fiscal year, `YYYY-MM-DD`. */
  end: string | undefined
}

/** The regulation prescribes `<SIREN>FEC<last day of the year, YYYYMMDD>.txt`. */
export function readFileName(path: string): FecFileName {
  const stem = basename(path).replace(/\.[^.]*(?:\.(?:gz|zst))?$/i, '')
  const [, digits, day = ''] = /^(\d+)FEC(\d{8})/i.exec(stem) ?? []
  const isUnknown = digits !== undefined && /^0+$/.test(digits)
  const siren = digits !== undefined && /^\d{9}$/.test(digits) && !isUnknown ? digits : undefined
  return { stem, siren, reference: isUnknown ? stem : digits, end: parseDay(day)?.day }
}
