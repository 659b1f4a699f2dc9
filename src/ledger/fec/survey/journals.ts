import type { JournalType } from '../../../formats/items/journal.ts'

/** Guesses the type of a journal from its code, its label and the accounts used in it. A FEC does not state it. */

/** Labels are clearer than codes (CA may be Caisse or Crédit Agricole), so all labels are tried before any code. */
const labels: [RegExp, JournalType][] = [
  [/\bA[ -]?NOUV|REPORTS? A NOUV|\bOUVERTURE\b/, 'AN'],
  [/REPRISE.*BALANCE/, 'RBAL'],
  [/\bA EXTOURNER/, 'A_EXT'],
  [/EXTOURN/, 'EXT'],
  [/NOTES? DE FRAIS|\bNDF\b/, 'NFD'],
  [/EXTRA[ -]?COMPTABLE/, 'OD_EXC'],
  [/\bPA[IY]ES?\b|SALAIRE|\bSOCIAL/, 'OD_PAIE'],
  [/\bTVA\b|DECLARATIONS? FISCALE/, 'OD_DECL_FISCALE'],
  [/LETTRAGE/, 'OD_LET'],
  [/\bAUDIT\b/, 'OD_AUDIT'],
  [/\bACHATS?\b|\bFOURNISSEURS?\b/, 'ACH'],
  [/\bVENTES?\b|\bCLIENTS?\b|\bFACTURATION\b/, 'VTE'],
  [/\bBANQUES?\b|\bBANCAIRE|CAISSE D.?EPARGNE/, 'BQ'],
  [/\bCAISSE\b|\bESPECES\b/, 'CAISSE'],
  [/OPERATIONS? DIVERSES|\bOD\b|\bINVENTAIRE\b/, 'OD'],
]

const codes: [RegExp, JournalType][] = [
  [/^(R?AN\d?|ANO|ANV|ANOUV)$/, 'AN'],
  [/^(PA|PAI|PAIE|PAY|SAL|OD ?PA?)$/, 'OD_PAIE'],
  [/^(NDF|NF|NFD)$/, 'NFD'],
  [/^(EXT)$/, 'EXT'],
  [/^(A|AC|ACH?|ACHA|HA)\d*$/, 'ACH'],
  [/^(V|VE|VEN?|VT|VTE)\d*$/, 'VTE'],
  [/^(BQ?|BQE|BNQ|BAN|BNP|CCP)\d*$/, 'BQ'],
  [/^(CAI|CAIS|CAISSE|CS)\d*$/, 'CAISSE'],
  [/^(OD|ODS?|DIV)\d*$/, 'OD'],
]

/** The type of a journal by its label or code. Undefined if neither is clear; the accounts then decide. */
export function journalTypeByName(code: string, label: string): JournalType | undefined {
  const plainLabel = plain(label)
  const plainCode = plain(code)
  return (
    labels.find(([pattern]) => pattern.test(plainLabel))?.[1] ??
    codes.find(([pattern]) => pattern.test(plainCode))?.[1]
  )
}

/** The number of lines that a journal has on accounts of each kind. */
export const noUse = { lines: 0, bank: 0, cash: 0, supplier: 0, customer: 0, cost: 0, income: 0 }
export type JournalUse = typeof noUse

/**
 * Decides by the accounts of the lines. Every entry of a bank journal has a line on 512, and most have one other line,
 * so a third of the lines is clear enough: no other kind of journal comes near that share. The same holds for cash and
 * 53.
 */
export function journalTypeByUse(use: JournalUse): JournalType {
  if (use.bank * 3 >= use.lines) return 'BQ'
  if (use.cash * 3 >= use.lines) return 'CAISSE'
  if (use.supplier * 5 >= use.lines && use.cost > use.income) return 'ACH'
  if (use.customer * 5 >= use.lines && use.income > use.cost) return 'VTE'
  return 'OD'
}

/**
 * Whether this is an opening journal. These repeat balances of earlier years, some of them item by item with the old
 * dates.
 */
export function isOpening(type: JournalType | undefined): boolean {
  return type === 'AN' || type === 'RBAL'
}

function plain(text: string): string {
  return text.normalize('NFD').replace(/\p{M}/gu, '').toUpperCase().trim()
}

/** The six payment modes of the ledger, as programs write them in ModeRglt. */
const paymentCodes: [RegExp, string][] = [
  [/^(CB|CARTE)/, 'CB'],
  [/^(VIR|VRT|VT)/, 'VIRT'],
  [/^(ESP|CASH|LIQ)/, 'ESP'],
  [/^(CH|CHQ)/, 'CHQ'],
  [/^(PRLV|PREL|PRE|PR|PL)/, 'PRLV'],
  [/^(LCR|LC|TRAITE|EFFET|BOR)/, 'LCR'],
]

/** The payment mode of a line. Undefined if the line names none, or one that is not among the six. */
export function paymentCode(mode: string): string | undefined {
  if (mode === '') return undefined
  const letters = mode
    .normalize('NFD')
    .toUpperCase()
    .replace(/[^A-Z]/g, '')
  return paymentCodes.find(([pattern]) => pattern.test(letters))?.[1]
}
