/**
 * Rendered columns, by id, of the accounts, journals, payments and sections that entry lines cite: few per folder,
 * repeated in every line.
 */
import { Buffer } from 'node:buffer'
import { type PartyKind, partyKind } from '../items/accounts/parties.ts'
import { paymentMode } from '../items/payment.ts'
import { renderedById } from '../text-bytes.ts'
import { fieldOf, LineWriter, layouts } from './layouts.ts'
import { openingState } from './records.ts'
import type { ThirdParties, ThirdParty } from './third-parties.ts'

/** ECRANOUVEAU of any other entry. */
export const noOpening: Uint8Array = Buffer.from('N  ', 'latin1')

/**
 * @param books `journalCodes` and `sectionCodes` by id, as the file writes them
 * @param letterings for accounts with lettering codes that do not fit into four columns: what is written for each of their
 *   codes
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
    /** `axis`: its rank among the axes, from 1. */
    sections: renderedById(sections, ({ id, axis }) => ({
      code: columnsOf(new LineWriter(layouts.ENTRY).key(partyField, books.sectionCodes.get(id)), partyField),
      axis,
    })),
    /** ECRANOUVEAU of an entry of a journal of opening balances, by exercice. */
    openings: renderedById(books.exercices, ({ lettering }) =>
      Buffer.from(openingState(lettering).padEnd(noOpening.length), 'latin1'),
    ),
    letterings,
  }
}
export type TraDictionary = ReturnType<typeof renderTraDictionary>

const partyField = 'AUXILIAIRE OU SECTION'

/** @param party undefined unless the account is a third party's */
function accountColumns(number: string, party: ThirdParty | undefined) {
  const line = new LineWriter(layouts.ENTRY).key('GENERAL', party?.collective ?? number)
  if (party) line.text('TYPE CPTE', 'X').key(partyField, party.code)
  return {
    /** GENERAL, TYPE CPTE and AUXILIAIRE. */
    columns: columnsOf(line, 'GENERAL', partyField),
    isThirdParty: party !== undefined,
    party: partyKind(number),
  }
}

/**
 * From the first column of one field to the last of another. Copied, because a view would keep the whole line in
 * memory.
 */
function columnsOf(writer: LineWriter, first: string, last = first): Uint8Array {
  const { at, length } = fieldOf(layouts.ENTRY, last)
  return Uint8Array.from(writer.line().subarray(fieldOf(layouts.ENTRY, first).at - 1, at - 1 + length))
}

/** TYPE PIECE of entry lines (docs/spec/tra.md#type-piece; p. 40): the kind of document of an entry. Pure. */
export type PieceType = 'FF' | 'AF' | 'FC' | 'AC' | 'RF' | 'RC' | 'OD'

/**
 * The line on the third party decides: between invoice and credit note, and whether money is a payment of a third
 * party.
 */
export type PieceRule = 'purchases' | 'sales' | 'money' | 'other'

function pieceRule(journalType: string): PieceRule {
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
