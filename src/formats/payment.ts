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

/** The internal code that partners see beside the mode. */
export function shownPaymentCode(internalCode: string): string {
  return Object.hasOwn(paymentModes, internalCode) ? internalCode : 'CHQ'
}
