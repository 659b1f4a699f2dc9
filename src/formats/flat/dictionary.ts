/**
 * The journals, accounts, payments and sections that flat rows name, rendered once per file to the bytes of their
 * fields. Keys are ids as numbers, as in the dictionaries of the other formats.
 */
import { paymentMode } from '../payment.ts'
import { bytesOf, longestOf, renderedById } from '../text-bytes.ts'

export interface FlatDictionaryRows {
  journals: { id: string; code: string; name: string; type: string }[]
  accounts: {
    id: string
    number: string
    name: string
    auxiliaryNumber: string | null
    auxiliaryName: string | null
  }[]
  payments: { id: string; code: string }[]
  sections: { id: string; code: string; axisCode: string }[]
}

/** Each field with the comma after it. */
export interface AccountFields {
  /** From the id to the name. */
  own: Uint8Array
  auxiliaryNumber: Uint8Array
  auxiliaryName: Uint8Array
  /** All of these. */
  whole: Uint8Array
}

export interface FlatDictionary {
  /** From `journal_id` to `journal_type`. */
  journals: ReadonlyMap<number, Uint8Array>
  accounts: ReadonlyMap<number, AccountFields>
  /** `payment_code`. */
  payments: ReadonlyMap<number, Uint8Array>
  /** A share up to its amount: `{"axis_code":"...","section_code":"...","amount":`, its quotes doubled. */
  sections: ReadonlyMap<number, Uint8Array>
  /** The longest account and payment together. */
  fieldBytesMax: number
  journalBytesMax: number
  sectionBytesMax: number
}

export function renderFlatDictionary(rows: FlatDictionaryRows): FlatDictionary {
  const journals = renderedById(rows.journals, ({ id, code, name, type }) =>
    bytesOf(`${id},${quoted(code)},${quoted(name)},${type}`),
  )
  const accounts = renderedById(rows.accounts, accountFields)
  const payments = renderedById(rows.payments, ({ code }) => bytesOf(paymentMode(code).code))
  const sections = renderedById(rows.sections, ({ code, axisCode }) => {
    const share = JSON.stringify({ axis_code: axisCode, section_code: code, amount: 0 })
    return bytesOf(doubled(share.slice(0, -2)))
  })
  const wholes = [...accounts.values()].map(({ whole }) => whole)
  return {
    journals,
    accounts,
    payments,
    sections,
    fieldBytesMax: longestOf(wholes) + longestOf(payments.values()),
    journalBytesMax: longestOf(journals.values()),
    sectionBytesMax: longestOf(sections.values()),
  }
}

function accountFields(account: FlatDictionaryRows['accounts'][number]): AccountFields {
  const own = `${account.id},${quoted(account.number)},${quoted(account.name)},`
  const auxiliaryNumber = `${quotedOrNothing(account.auxiliaryNumber)},`
  const auxiliaryName = `${quotedOrNothing(account.auxiliaryName)},`
  return {
    own: bytesOf(own),
    auxiliaryNumber: bytesOf(auxiliaryNumber),
    auxiliaryName: bytesOf(auxiliaryName),
    whole: bytesOf(own + auxiliaryNumber + auxiliaryName),
  }
}

const doubled = (text: string): string => text.replaceAll('"', '""')
const quoted = (text: string): string => `"${doubled(text)}"`
const quotedOrNothing = (text: string | null): string => (text === null ? '' : quoted(text))
