/** Modes of payment (docs/spec/resources.md#payment). */

import type { z } from 'zod'
import * as column from './table.ts'
import { id, named, oneOf, text } from './values.ts'

/** Modes of payment as partners see them (docs/spec/resources.md#payment), by the code in the database. */
export const paymentModes: Readonly<Record<string, { name: string; code: string }>> = {
  CB: { name: 'Carte Bleue', code: 'CB' },
  VIRT: { name: 'Virement', code: 'VIR' },
  ESP: { name: 'Espèce', code: 'ESP' },
  CHQ: { name: 'Chèque', code: 'CHQ' },
  PRLV: { name: 'Prélèvement', code: 'PRE' },
  LCR: { name: 'Lettre de change', code: 'LCR' },
}

/** A mode of payment outside this table is shown as a cheque. */
export function paymentMode(internalCode: string): { name: string; code: string } {
  return paymentModes[internalCode] ?? paymentModes['CHQ']!
}

/** The internal code that partners see beside the mode of payment. */
export function shownPaymentCode(internalCode: string): string {
  return Object.hasOwn(paymentModes, internalCode) ? internalCode : 'CHQ'
}

export const paymentTable = column.table('payments', {
  id: column.id,
  /** CB, VIRT, ESP, CHQ, PRLV or LCR; partners see any other code as CHQ. */
  code: column.text,
})
export type PaymentView = column.ShownRow<typeof paymentTable>

const internalCode = oneOf(Object.keys(paymentModes)).meta({ type: 'string', example: 'VIRT' })

export const Payment = named('Payment', {
  producerId: id,
  name: text.meta({ example: 'Virement' }),
  code: text.meta({ example: 'VIR' }),
  additionalProducerProperties: named('PaymentProperties', { code: internalCode }),
})
export type FilePayment = z.output<typeof Payment>

export function paymentItem({ id, code }: PaymentView): z.input<typeof Payment> {
  return {
    producerId: id,
    ...paymentMode(code),
    additionalProducerProperties: { code: shownPaymentCode(code) },
  }
}

/** A mode of payment as an account or a movement names it. */
export const NamedPayment = named('NamedPayment', { producerId: id, code: text })

export const namedPayment = ({ id, code }: PaymentView): z.input<typeof NamedPayment> => ({
  producerId: id,
  code: paymentMode(code).code,
})

export const paymentRow = (payment: FilePayment): column.FileRow<typeof paymentTable> => ({
  id: payment.producerId,
  code: payment.additionalProducerProperties.code,
})
