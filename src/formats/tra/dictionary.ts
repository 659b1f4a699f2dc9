/**
 * Rendered columns, by id, of the accounts, journals, payments and sections that entry lines cite. A folder has few of
 * them, and every line repeats some.
 */
import { Buffer } from 'node:buffer'
import { type PartyKind, partyKind } from '../items/accounts/parties.ts'
import { paymentMode } from '../items/payment.ts'
import { renderedById } from '../text-bytes.ts'
import { fieldOf, LineWriter, layouts } from './layouts.ts'
import { openingState } from './records.ts'
import type { ThirdParties, ThirdParty } from './third-parties.ts'

/** The columns ECRANOUVEAU of every entry outside journals of opening balances. */
export const noOpening: Uint8Array = Buffer.from('N  ', 'latin1')

/**
 * @param books with `journalCodes` and `sectionCodes`: the codes that the file writes, by id
 * @param letterings by id of account, only for accounts with lettering codes that do not fit into four columns: the
 *   text to write for each code
 * @throws {TraOverflow} for a number or a code that does not fit
 */
export function renderTraDictionary(
  books: {
    journals: { id: string; type: string }[]
    journalCodes: ReadonlyMap<string, string>
    accounts: { id: string; number: string }[]
    parties: Pick<ThirdParties, 'byAccount'>
    payments: { id: string; code: string }[]
    axes: { sections: { id: string }[] }[]
    sectionCodes: ReadonlyMap<string, string>
    exercices: { id: string; lettering: string }[]
  },
  letterings: ReadonlyMap<number, ReadonlyMap<string, string>>,
) {
  const sections = books.axes.flatMap(({ sections }, i) => sections.map(({ id }) => ({ id, axis: i + 1 })))
  return {
    accounts: renderedById(books.accounts, ({ id, number }) =>
      accountColumns(number, books.parties.byAccount.get(id)),
    ),
    journals: renderedById(books.journals, ({ id, type }) => ({
      code: columnsOf(new LineWriter(layouts.ENTRY).key('JOURNAL', books.journalCodes.get(id)), 'JOURNAL'),
      rule: pieceRule(type),
      isOpening: type === 'AN',
    })),
    payments: renderedById(books.payments, ({ code }) =>
      columnsOf(new LineWriter(layouts.ENTRY).key('MODEPAIE', paymentMode(code).code, 'right'), 'MODEPAIE'),
    ),
    /** `axis` is the rank of the section's axis, from 1. */
    sections: renderedById(sections, ({ id, axis }) => ({
      code: columnsOf(new LineWriter(layouts.ENTRY).key(partyField, books.sectionCodes.get(id)), partyField),
      axis,
    })),
    /** The columns ECRANOUVEAU of entries in journals of opening balances, by exercice. */
    openings: renderedById(books.exercices, ({ lettering }) =>
      Buffer.from(openingState(lettering).padEnd(noOpening.length), 'latin1'),
    ),
    letterings,
  }
}
export type TraDictionary = ReturnType<typeof renderTraDictionary>

const partyField = 'AUXILIAIRE OU SECTION'

/** @param party undefined if the account is a general account */
function accountColumns(number: string, party: ThirdParty | undefined) {
  const line = new LineWriter(layouts.ENTRY).key('GENERAL', party?.collective ?? number)
  if (party) line.text('TYPE CPTE', 'X').key(partyField, party.code)
  return {
    /** The columns GENERAL, TYPE CPTE and AUXILIAIRE. */
    columns: columnsOf(line, 'GENERAL', partyField),
    isThirdParty: party !== undefined,
    party: partyKind(number),
  }
}

/**
 * The columns from the first of one field to the last of another. They are copied, because a view would keep the whole
 * line in memory.
 */
function columnsOf(writer: LineWriter, first: string, last = first): Uint8Array {
  const { at, length } = fieldOf(layouts.ENTRY, last)
  return Uint8Array.from(writer.line().subarray(fieldOf(layouts.ENTRY, first).at - 1, at - 1 + length))
}

/** TYPE PIECE of entry lines, which is the kind of document of an entry (docs/spec/tra.md#type-piece; p. 40). */
export type PieceType = 'FF' | 'AF' | 'FC' | 'AC' | 'RF' | 'RC' | 'OD'

/**
 * How a journal decides the type. The line on the third party tells an invoice from a credit note, and tells whether
 * money is a payment of a third party.
 */
export type PieceRule = 'purchases' | 'sales' | 'money' | 'other'

function pieceRule(journalType: string): PieceRule {
  if (journalType === 'ACH') return 'purchases'
  if (journalType === 'VTE') return 'sales'
  return journalType === 'BQ' || journalType === 'CAISSE' ? 'money' : 'other'
}

/** The type of document if this line decides it; undefined if another line may decide it. */
export function typeByLine(
  rule: PieceRule,
  party: PartyKind | undefined,
  isDebit: boolean,
): PieceType | undefined {
  if (rule === 'purchases' && party === 'supplier') return isDebit ? 'AF' : 'FF'
  if (rule === 'sales' && party === 'customer') return isDebit ? 'FC' : 'AC'
  return rule === 'money' && party === 'supplier' ? 'RF' : undefined
}

/** The type of document of an entry if none of its lines decided it. */
export function typeOtherwise(rule: PieceRule, hasCustomer: boolean): PieceType {
  if (rule === 'purchases') return 'FF'
  if (rule === 'sales') return 'FC'
  return rule === 'money' && hasCustomer ? 'RC' : 'OD'
}
