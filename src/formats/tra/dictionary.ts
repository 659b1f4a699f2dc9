/**
 * Rendered columns, by id, of the accounts, journals, payments and sections that entry lines cite: few per folder,
 * repeated in every line.
 *
 * Keys are ids as numbers: ids are below 2^53, and a row's id is read from its digits without making a string.
 */

import { Buffer } from 'node:buffer'
import { type PartyKind, partyKind } from '../party-kind.ts'
import { paymentMode } from '../payment.ts'
import { renderedById } from '../text-bytes.ts'
import type { ThirdParty } from './accounts/third-parties.ts'
import { openingState } from './folder-records.ts'
import { LineWriter } from './layouts/fixed-width.ts'
import { fieldOf, layouts } from './layouts/layouts.ts'
import { type PieceRule, pieceRule } from './piece-type.ts'

export interface TraDictionaryRows {
  /** `code`: at most three characters. */
  journals: { id: string; code: string; type: string }[]
  /** `party`: null unless the account is a third party's. */
  accounts: { id: string; number: string; party: ThirdParty | null }[]
  payments: { id: string; code: string }[]
  /** `axis`: its rank among the axes, from 1. */
  sections: { id: string; code: string; axis: number }[]
  exercices: { id: string; lettering: string }[]
  /** For accounts with lettering codes that do not fit into four columns: what is written for each of their codes. */
  letterings: ReadonlyMap<number, ReadonlyMap<string, string>>
}

export interface AccountColumns {
  /** GENERAL, TYPE CPTE and AUXILIAIRE. */
  columns: Uint8Array
  isThirdParty: boolean
  party: PartyKind | undefined
}

export interface JournalColumns {
  code: Uint8Array
  rule: PieceRule
  isOpening: boolean
}

export interface TraDictionary {
  accounts: ReadonlyMap<number, AccountColumns>
  journals: ReadonlyMap<number, JournalColumns>
  payments: ReadonlyMap<number, Uint8Array>
  sections: ReadonlyMap<number, { code: Uint8Array; axis: number }>
  /** ECRANOUVEAU of an entry of a journal of opening balances, by exercice. */
  openings: ReadonlyMap<number, Uint8Array>
  letterings: TraDictionaryRows['letterings']
}

/** ECRANOUVEAU of any other entry. */
export const noOpening: Uint8Array = Buffer.from('N  ', 'latin1')

/** @throws {TraOverflow} for a number or a code that does not fit */
export function renderTraDictionary(rows: TraDictionaryRows): TraDictionary {
  return {
    accounts: renderedById(rows.accounts, accountColumns),
    journals: renderedById(rows.journals, ({ code, type }) => ({
      code: columnsOf(new LineWriter(layouts.ENTRY).key('JOURNAL', code), 'JOURNAL'),
      rule: pieceRule(type),
      isOpening: type === 'AN',
    })),
    payments: renderedById(rows.payments, ({ code }) =>
      columnsOf(new LineWriter(layouts.ENTRY).key('MODEPAIE', paymentMode(code).code, 'right'), 'MODEPAIE'),
    ),
    sections: renderedById(rows.sections, ({ code, axis }) => ({
      code: columnsOf(new LineWriter(layouts.ENTRY).key(partyField, code), partyField),
      axis,
    })),
    openings: renderedById(rows.exercices, ({ lettering }) =>
      Buffer.from(openingState(lettering).padEnd(noOpening.length), 'latin1'),
    ),
    letterings: rows.letterings,
  }
}

const partyField = 'AUXILIAIRE OU SECTION'

function accountColumns({ number, party }: TraDictionaryRows['accounts'][number]): AccountColumns {
  const line = new LineWriter(layouts.ENTRY).key('GENERAL', party?.collective ?? number)
  if (party !== null) line.text('TYPE CPTE', 'X').key(partyField, party.code)
  return {
    columns: columnsOf(line, 'GENERAL', partyField),
    isThirdParty: party !== null,
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
