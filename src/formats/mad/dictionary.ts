/**
 * The journals, accounts, payments, sections and third parties that movements refer to: few per folder, repeated in
 * every movement. Each is rendered once per export to the bytes of its JSON and then copied.
 *
 * Keys are ids as numbers: ids are below 2^53, and a row's id is read from its digits without making a string.
 */

import { type JournalType, journalTypeLabels } from '../items/journal.ts'
import { paymentMode } from '../payment.ts'
import type { DictionaryRows } from '../rows.ts'
import { longestOf, renderedById } from '../text-bytes.ts'
import { type Piece, pieceOf } from './words.ts'

export interface SectionFragments {
  axisId: number
  /** `{"producerId":"…","code":"…","name":"…","sections":[` of the section's axis, and `head`. */
  axisAndHead: Piece
  /** `{"producerId":"…","amount":` */
  head: Piece
  /** `,"code":"…","name":"…"}` */
  tail: Piece
}

export interface Dictionary {
  journals: ReadonlyMap<number, Piece>
  /** `{…},"payment":` */
  accounts: ReadonlyMap<number, Piece>
  /** `{…},"analytics":[` */
  payments: ReadonlyMap<number, Piece>
  sections: ReadonlyMap<number, SectionFragments>
  thirdParties: ReadonlyMap<number, Piece>
  /** The longest account and payment together: what a movement needs beyond its own row, besides its shares. */
  fragmentBytesMax: number
  /** The longest journal and third party together: what an entry needs beyond its own row. */
  entryFragmentBytesMax: number
  /** The longest share, with its axis. */
  shareBytesMax: number
}

/** Shapes: docs/spec/resources.md#movement (`entry.journal`, `account`, `payment`, `analytics`). */
export function renderDictionary(rows: DictionaryRows): Dictionary {
  const accounts = fragmentsById(
    rows.accounts,
    ({ id, number, name }) => ({ producerId: id, number, name }),
    ',"payment":',
  )
  const payments = fragmentsById(
    rows.payments,
    ({ id, code }) => ({ producerId: id, ...paymentMode(code) }),
    ',"analytics":[',
  )
  const axes = new Map(rows.axes.map((axis) => [axis.id, axis]))
  const sections = renderedById(rows.sections, ({ id, axisId, code, name }): SectionFragments => {
    const axis = axes.get(axisId)!
    const axisText = JSON.stringify({ producerId: axis.id, code: axis.code, name: axis.name })
    const head = `{"producerId":"${id}","amount":`
    return {
      axisId: Number(axisId),
      axisAndHead: pieceOf(`${axisText.slice(0, -1)},"sections":[${head}`),
      head: pieceOf(head),
      tail: pieceOf(`,${JSON.stringify({ code, name }).slice(1)}`),
    }
  })
  const journals = fragmentsById(rows.journals, ({ id, code, name, type }) => ({
    producerId: id,
    customerReferenceCode: code,
    name,
    type: journalTypeLabels[type as JournalType],
  }))
  const thirdParties = fragmentsById(rows.thirdParties, ({ code, name }) => ({ name, code }))
  return {
    journals,
    accounts,
    payments,
    sections,
    thirdParties,
    entryFragmentBytesMax: longestOf(journals.values()) + longestOf(thirdParties.values()),
    fragmentBytesMax: longestOf(accounts.values()) + longestOf(payments.values()),
    shareBytesMax: Math.max(
      0,
      ...[...sections.values()].map(({ axisAndHead, tail }) => axisAndHead.length + tail.length),
    ),
  }
}

/** @param next what follows each of them */
function fragmentsById<Row extends { id: string }>(
  rows: Row[],
  item: (row: Row) => Record<string, string>,
  next = '',
): Map<number, Piece> {
  return renderedById(rows, (row) => pieceOf(JSON.stringify(item(row)) + next))
}
