/** Modes of payment (docs/spec/resources.md#payment). */
import type { z } from 'zod'
import { paymentMode, paymentModes, shownPaymentCode } from '../payment.ts'
import * as column from './table.ts'
import { id, named, oneOf, text } from './values.ts'

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

/** The mode of payment that an account or a movement names. */
export const NamedPayment = named('NamedPayment', { producerId: id, code: text })

export const namedPayment = ({ id, code }: PaymentView): z.input<typeof NamedPayment> => ({
  producerId: id,
  code: paymentMode(code).code,
})

export const paymentRow = (payment: FilePayment): column.FileRow<typeof paymentTable> => ({
  id: payment.producerId,
  code: payment.additionalProducerProperties.code,
})
