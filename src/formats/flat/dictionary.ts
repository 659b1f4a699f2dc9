/**
 * The journals, accounts, payments, sections and third parties that flat rows name. Each is rendered once per file to
 * the bytes of its fields.
 */

import { Buffer } from 'node:buffer'
import { paymentMode } from '../items/payment.ts'
import type { AuxiliaryRow, DictionaryRows } from '../rows.ts'
import { longestOf, pieceOf, renderedById } from '../text-bytes.ts'
import type { Dialect } from './dialect.ts'

/** @param auxiliaries the third-party accounts that a FEC filed for accounts */
export function renderFlatDictionary(
  rows: DictionaryRows,
  auxiliaries: readonly AuxiliaryRow[],
  dialect: Dialect,
) {
  const separator = String.fromCharCode(dialect.separator)
  const ended = (...fields: string[]) => pieceOf(fields.map((field) => field + separator).join(''))
  const text = (value: string | null) => dialect.field(value)
  const journals = renderedById(rows.journals, ({ id, code, name, type }) =>
    ended(id, text(code), text(name), type),
  )
  const auxiliaryOf = new Map(auxiliaries.map((auxiliary) => [auxiliary.id, auxiliary]))
  const accounts = renderedById(rows.accounts, ({ id, number, name }) => {
    const auxiliary = auxiliaryOf.get(id)
    const own = `${id}${separator}${text(number)}${separator}${text(name)}${separator}`
    const auxiliaryNumber = text(auxiliary?.number || null) + separator
    const fields = pieceOf(`${own}${auxiliaryNumber}${text(auxiliary?.name || null)}${separator}`)
    const auxiliaryNumberAt = Buffer.byteLength(own)
    const auxiliaryNameAt = auxiliaryNumberAt + Buffer.byteLength(auxiliaryNumber)
    return { ...fields, auxiliaryNumberAt, auxiliaryNameAt }
  })
  const payments = renderedById(rows.payments, ({ code }) => pieceOf(paymentMode(code).code))
  const axisCodes = new Map(rows.axes.map(({ id, code }) => [id, code]))
  const sections = renderedById(rows.sections, ({ code, axisId }) => {
    const share = JSON.stringify({ axis_code: axisCodes.get(axisId), section_code: code, amount: 0 })
    return pieceOf(dialect.insideJson(share.slice(0, -2)))
  })
  const thirdParties = renderedById(rows.thirdParties, ({ code, name }) => ended(text(code), text(name)))
  return {
    /** The fields from `journal_id` to `journal_type`, and a separator. */
    journals,
    /**
     * The fields from `account_id` to `auxiliary_name`, each with a separator after it; and where the number and the
     * name of the third-party account begin.
     */
    accounts,
    /** The field `payment_code`. */
    payments,
    /** A share up to its amount: `{"axis_code":"...","section_code":"...","amount":`. */
    sections,
    /** The fields `third_party_code` and `third_party_name`, each with a separator after it. */
    thirdParties,
    /** Bytes of the longest account and the longest payment together. */
    fieldBytesMax: longestOf(accounts.values()) + longestOf(payments.values()),
    /** Bytes of the longest journal and the longest third party together. */
    entryFieldBytesMax: longestOf(journals.values()) + longestOf(thirdParties.values()),
    sectionBytesMax: longestOf(sections.values()),
  }
}
export type FlatDictionary = ReturnType<typeof renderFlatDictionary>
