/**
 * The journals, accounts, payments, sections and third parties that movements refer to: few per folder, repeated in
 * every movement. Each is rendered once per export to the bytes of its JSON and then copied.
 *
 * Keys are ids as numbers: ids are below 2^53, and a row's id is read from its digits without making a string.
 */

import { paymentMode } from '../payment.ts'
import { bytesOf } from '../text-bytes.ts'
import { journalTypeLabels } from './journal.ts'

export interface DictionaryRows {
  journals: { id: string; code: string; name: string; type: string }[]
  accounts: { id: string; number: string; name: string }[]
  payments: { id: string; code: string }[]
  axes: { id: string; code: string; name: string }[]
  sections: { id: string; axisId: string; code: string; name: string }[]
  thirdParties: { id: string; code: string; name: string }[]
}

export interface SectionFragments {
  axisId: number
  /** `{"producerId":"…","code":"…","name":"…","sections":[` of the section's axis. */
  axis: Uint8Array
  /** `{"producerId":"…","amount":` */
  head: Uint8Array
  /** `,"code":"…","name":"…"}` */
  tail: Uint8Array
}

export interface Dictionary {
  journals: ReadonlyMap<number, Uint8Array>
  accounts: ReadonlyMap<number, Uint8Array>
  payments: ReadonlyMap<number, Uint8Array>
  sections: ReadonlyMap<number, SectionFragments>
  thirdParties: ReadonlyMap<number, Uint8Array>
  /** The longest account and payment together: what a movement needs beyond its own row, besides its shares. */
  fragmentBytesMax: number
  /** The longest journal and third party together: what an entry needs beyond its own row. */
  entryFragmentBytesMax: number
  /** The longest share, with its axis. */
  shareBytesMax: number
}

/** Shapes: docs/spec/resources.md#movement (`entry.journal`, `account`, `payment`, `analytics`). */
export function renderDictionary(rows: DictionaryRows): Dictionary {
  const accounts = fragmentsById(rows.accounts, ({ id, number, name }) => ({ producerId: id, number, name }))
  const payments = fragmentsById(rows.payments, ({ id, code }) => ({ producerId: id, ...paymentMode(code) }))
  const axes = new Map(rows.axes.map((axis) => [axis.id, axis]))
  const sections = new Map<number, SectionFragments>()
  for (const { id, axisId, code, name } of rows.sections) {
    const axis = axes.get(axisId)!
    const axisText = JSON.stringify({ producerId: axis.id, code: axis.code, name: axis.name })
    sections.set(Number(id), {
      axisId: Number(axisId),
      axis: bytesOf(`${axisText.slice(0, -1)},"sections":[`),
      head: bytesOf(`{"producerId":"${id}","amount":`),
      tail: bytesOf(`,${JSON.stringify({ code, name }).slice(1)}`),
    })
  }
  const journals = fragmentsById(rows.journals, ({ id, code, name, type }) => ({
    producerId: id,
    customerReferenceCode: code,
    name,
    type: journalTypeLabels[type] ?? type,
  }))
  const thirdParties = fragmentsById(rows.thirdParties, ({ code, name }) => ({ name, code }))
  return {
    journals,
    accounts,
    payments,
    sections,
    thirdParties,
    entryFragmentBytesMax: longest(journals.values()) + longest(thirdParties.values()),
    fragmentBytesMax: longest(accounts.values()) + longest(payments.values()),
    shareBytesMax: Math.max(
      0,
      ...[...sections.values()].map(({ axis, head, tail }) => axis.length + head.length + tail.length),
    ),
  }
}

function fragmentsById<Row extends { id: string }>(
  rows: Row[],
  item: (row: Row) => Record<string, string>,
): Map<number, Uint8Array> {
  return new Map(rows.map((row) => [Number(row.id), bytesOf(JSON.stringify(item(row)))]))
}

function longest(fragments: Iterable<Uint8Array>): number {
  let most = 0
  for (const fragment of fragments) most = Math.max(most, fragment.length)
  return most
}
