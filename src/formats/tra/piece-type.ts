/** TYPE PIECE of entry lines (tra.md, Entry lines; p. 40): what kind of document an entry is. Pure. */
import type { PartyKind } from '../party-kind.ts'

export type PieceType = 'FF' | 'AF' | 'FC' | 'AC' | 'RF' | 'RC' | 'OD'

/** An invoice turns into a credit note by its line on the third party; a payment is one by that line. */
export type PieceRule = 'purchases' | 'sales' | 'money' | 'other'

export function pieceRule(journalType: string): PieceRule {
  if (journalType === 'ACH') return 'purchases'
  if (journalType === 'VTE') return 'sales'
  return journalType === 'BQ' || journalType === 'CAISSE' ? 'money' : 'other'
}

/** The type, where this line decides it: no line behind it matters then. */
export function typeByLine(
  rule: PieceRule,
  party: PartyKind | undefined,
  isDebit: boolean,
): PieceType | undefined {
  if (rule === 'purchases' && party === 'supplier') return isDebit ? 'AF' : 'FF'
  if (rule === 'sales' && party === 'customer') return isDebit ? 'FC' : 'AC'
  return rule === 'money' && party === 'supplier' ? 'RF' : undefined
}

/** The type of an entry of which no line decided. */
export function typeOtherwise(rule: PieceRule, hasCustomer: boolean): PieceType {
  if (rule === 'purchases') return 'FF'
  if (rule === 'sales') return 'FC'
  return rule === 'money' && hasCustomer ? 'RC' : 'OD'
}
