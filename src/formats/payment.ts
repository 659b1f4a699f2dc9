/** How a mode of payment is shown to partners (contract, section 4), by the code the database holds. */
export const paymentModes: Readonly<Record<string, { name: string; code: string }>> = {
  CB: { name: 'Carte Bleue', code: 'CB' },
  VIRT: { name: 'Virement', code: 'VIR' },
  ESP: { name: 'Espèce', code: 'ESP' },
  CHQ: { name: 'Chèque', code: 'CHQ' },
  PRLV: { name: 'Prélèvement', code: 'PRE' },
  LCR: { name: 'Lettre de change', code: 'LCR' },
}

/** A mode of payment the contract does not list is shown as a cheque. */
export function paymentMode(internalCode: string): { name: string; code: string } {
  return paymentModes[internalCode] ?? paymentModes['CHQ']!
}

/** The internal code as partners see it, beside the mode. */
export function shownPaymentCode(internalCode: string): string {
  return Object.hasOwn(paymentModes, internalCode) ? internalCode : 'CHQ'
}
