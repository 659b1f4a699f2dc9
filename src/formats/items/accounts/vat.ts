/** VAT codes (docs/spec/resources.md#vat), which companies name. */
import type { z } from 'zod'
import { decimal as digits } from '../../minor-units.ts'
import * as column from '../table.ts'
import { code, decimal, id, NamedAccount, named, textOrNull } from '../values.ts'

export const vatTable = column.table('vat_codes', {
  id: column.id,
  code: column.text,
  /** Hundredths of a percent: 2000 is 20 %. */
  rate: column.column<number>('plain'),
})
export type VatCodeView = column.ShownRow<typeof vatTable>

const rate = decimal(2, 'a rate with at most two decimals').refine(
  (value) => value >= 0n && value <= 10_000n,
  'a rate from 0 to 100 is expected',
)

export const NamedVat = named('NamedVat', {
  producerId: id,
  customerReferenceCode: code,
  rate: rate.meta({ type: 'number', description: 'Percentage' }),
})
export type FileVat = z.output<typeof NamedVat>

export const namedVat = ({ id, code, rate }: VatCodeView): z.input<typeof NamedVat> => ({
  producerId: id,
  customerReferenceCode: code,
  rate: digits(String(rate), 2),
})

export const Vat = named('Vat', {
  ...NamedVat.shape,
  account: named('VatAccounts', { deductible: NamedAccount.nullable(), collected: NamedAccount.nullable() }),
  type: textOrNull,
  exigibility: textOrNull,
  additionalProducerProperties: named('VatProperties', { typeCode: textOrNull, exigibilityCode: textOrNull }),
})

/** The other members are null: the ledger has only the code and the rate. */
export const vatItem = (vat: VatCodeView): z.input<typeof Vat> => ({
  ...namedVat(vat),
  account: { deductible: null, collected: null },
  type: null,
  exigibility: null,
  additionalProducerProperties: { typeCode: null, exigibilityCode: null },
})

export const vatRow = (vat: FileVat): column.FileRow<typeof vatTable> => ({
  id: vat.producerId,
  code: vat.customerReferenceCode,
  rate: Number(vat.rate),
})
