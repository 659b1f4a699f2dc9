/**
 * The journals, accounts, payments, sections and third parties that movements refer to. A folder has few of them, and
 * every movement repeats some. Each is rendered once per export to the bytes of its JSON and then copied.
 */

import { type JournalType, journalTypeLabels } from '../items/journal.ts'
import { paymentMode } from '../items/payment.ts'
import type { DictionaryRows } from '../rows.ts'
import { longestOf, type Piece, pieceOf, renderedById } from '../text-bytes.ts'

/**
 * Renders journals, accounts, payments and sections in the shapes of docs/spec/resources.md#movement (`entry.journal`,
 * `account`, `payment`, `analytics`).
 */
export function renderDictionary(rows: DictionaryRows) {
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
  const sections = renderedById(rows.sections, ({ id, axisId, code, name }) => {
    const axis = axes.get(axisId)!
    const axisText = JSON.stringify({ producerId: axis.id, code: axis.code, name: axis.name })
    const head = `{"producerId":"${id}","amount":`
    return {
      axisId: Number(axisId),
      /** `{"producerId":"…","code":"…","name":"…","sections":[` for the axis of the section, followed by `head`. */
      axisAndHead: pieceOf(`${axisText.slice(0, -1)},"sections":[${head}`),
      /** `{"producerId":"…","amount":` */
      head: pieceOf(head),
      /** `,"code":"…","name":"…"}` */
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
    /** `{…},"payment":` */
    accounts,
    /** `{…},"analytics":[` */
    payments,
    sections,
    thirdParties,
    /**
     * The bytes of the longest account and the longest payment together. A movement needs these in addition to its own
     * row and its shares.
     */
    fragmentBytesMax: longestOf(accounts.values()) + longestOf(payments.values()),
    /**
     * The bytes of the longest journal and the longest third party together. An entry needs these in addition to its
     * own row.
     */
    entryFragmentBytesMax: longestOf(journals.values()) + longestOf(thirdParties.values()),
    /** Bytes of the longest share, with its axis. */
    shareBytesMax: longestOf(
      sections.values().map(({ axisAndHead, tail }) => ({ length: axisAndHead.length + tail.length })),
    ),
  }
}
export type Dictionary = ReturnType<typeof renderDictionary>

/** @param next the text that follows each fragment */
function fragmentsById<Row extends { id: string }>(
  rows: Row[],
  item: (row: Row) => Record<string, string>,
  next = '',
): Map<number, Piece> {
  return renderedById(rows, (row) => pieceOf(JSON.stringify(item(row)) + next))
}
