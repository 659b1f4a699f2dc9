/**
 * The journals, accounts, payments, sections and third parties that flat rows name, rendered once per file to the bytes
 * of their fields. Keys are ids as numbers, as in the dictionaries of the other formats.
 */

import { Buffer } from 'node:buffer'
import { paymentMode } from '../payment.ts'
import type { AuxiliaryRow, DictionaryRows } from '../rows.ts'
import { bytesOf, longestOf, renderedById } from '../text-bytes.ts'
import type { Dialect } from './dialect.ts'

/** The fields of an account, each with the separator after it. */
export interface AccountFields {
  bytes: Uint8Array
  length: number
  /** Where the number of its third-party account begins, and the name of that. */
  auxiliaryNumberAt: number
  auxiliaryNameAt: number
}

export interface FlatDictionary {
  /** From `journal_id` to `journal_type`, and a separator. */
  journals: ReadonlyMap<number, Uint8Array>
  /** From `account_id` to `auxiliary_name`. */
  accounts: ReadonlyMap<number, AccountFields>
  /** `payment_code`. */
  payments: ReadonlyMap<number, Uint8Array>
  /** A share up to its amount: `{"axis_code":"...","section_code":"...","amount":`. */
  sections: ReadonlyMap<number, Uint8Array>
  /** `third_party_code` and `third_party_name`, with a separator after each. */
  thirdParties: ReadonlyMap<number, Uint8Array>
  /** The longest account and payment together. */
  fieldBytesMax: number
  /** The longest journal and third party together. */
  entryFieldBytesMax: number
  sectionBytesMax: number
}

/** @param auxiliaries of the accounts that a FEC filed with a third-party account */
export function renderFlatDictionary(
  rows: DictionaryRows,
  auxiliaries: readonly AuxiliaryRow[],
  dialect: Dialect,
): FlatDictionary {
  const separator = String.fromCharCode(dialect.separator)
  const ended = (...fields: string[]) => bytesOf(fields.map((field) => field + separator).join(''))
  const text = (value: string | null) => dialect.field(value)
  const journals = renderedById(rows.journals, ({ id, code, name, type }) =>
    ended(id, text(code), text(name), type),
  )
  const auxiliaryOf = new Map(auxiliaries.map((auxiliary) => [auxiliary.id, auxiliary]))
  const accounts = renderedById(rows.accounts, ({ id, number, name }): AccountFields => {
    const auxiliary = auxiliaryOf.get(id)
    const own = `${id}${separator}${text(number)}${separator}${text(name)}${separator}`
    const auxiliaryNumber = text(auxiliary?.number || null) + separator
    const bytes = bytesOf(`${own}${auxiliaryNumber}${text(auxiliary?.name || null)}${separator}`)
    const auxiliaryNumberAt = Buffer.byteLength(own)
    const auxiliaryNameAt = auxiliaryNumberAt + Buffer.byteLength(auxiliaryNumber)
    return { bytes, length: bytes.length, auxiliaryNumberAt, auxiliaryNameAt }
  })
  const payments = renderedById(rows.payments, ({ code }) => bytesOf(paymentMode(code).code))
  const axisCodes = new Map(rows.axes.map(({ id, code }) => [id, code]))
  const sections = renderedById(rows.sections, ({ code, axisId }) => {
    const share = JSON.stringify({ axis_code: axisCodes.get(axisId), section_code: code, amount: 0 })
    return bytesOf(dialect.insideJson(share.slice(0, -2)))
  })
  const thirdParties = renderedById(rows.thirdParties, ({ code, name }) => ended(text(code), text(name)))
  return {
    journals,
    accounts,
    payments,
    sections,
    thirdParties,
    fieldBytesMax: longestOf(accounts.values()) + longestOf(payments.values()),
    entryFieldBytesMax: longestOf(journals.values()) + longestOf(thirdParties.values()),
    sectionBytesMax: longestOf(sections.values()),
  }
}
