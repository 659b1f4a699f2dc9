/** TYPE PIECE of entry lines (docs/spec/tra.md#type-piece; p. 40): the kind of document of an entry. Pure. */
import type { PartyKind } from '../party-kind.ts'

export type PieceType = 'FF' | 'AF' | 'FC' | 'AC' | 'RF' | 'RC' | 'OD'

/**
 * The line on the third party decides: between invoice and credit note, and whether money is a payment of a third
 * party.
 */
export type PieceRule = 'purchases' | 'sales' | 'money' | 'other'

export function pieceRule(journalType: string): PieceRule {
  if (journalType === 'ACH') return 'purchases'
  if (journalType === 'VTE') return 'sales'
  return journalType === 'BQ' || journalType === 'CAISSE' ? 'money' : 'other'
}

/** The type if this line decides it; later lines then do not matter. */
export function typeByLine(
  rule: PieceRule,
  party: PartyKind | undefined,
  isDebit: boolean,
): PieceType | undefined {
  if (rule === 'purchases' && party === 'supplier') return isDebit ? 'AF' : 'FF'
  if (rule === 'sales' && party === 'customer') return isDebit ? 'FC' : 'AC'
  return rule === 'money' && party === 'supplier' ? 'RF' : undefined
}

/** The type of an entry that no line decided. */
export function typeOtherwise(rule: PieceRule, hasCustomer: boolean): PieceType {
  if (rule === 'purchases') return 'FF'
  if (rule === 'sales') return 'FC'
  return rule === 'money' && hasCustomer ? 'RC' : 'OD'
}
