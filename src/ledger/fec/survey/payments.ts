/** The ledger's six payment modes, as programs write them in ModeRglt. */
const codes: [RegExp, string][] = [
  [/^(CB|CARTE)/, 'CB'],
  [/^(VIR|VRT|VT)/, 'VIRT'],
  [/^(ESP|CASH|LIQ)/, 'ESP'],
  [/^(CH|CHQ)/, 'CHQ'],
  [/^(PRLV|PREL|PRE|PR|PL)/, 'PRLV'],
  [/^(LCR|LC|TRAITE|EFFET|BOR)/, 'LCR'],
]

/** Undefined if the line names no mode, or none of the six. */
export function paymentCode(mode: string): string | undefined {
  if (mode === '') return undefined
  const letters = mode
    .normalize('NFD')
    .toUpperCase()
    .replace(/[^A-Z]/g, '')
  return codes.find(([pattern]) => pattern.test(letters))?.[1]
}
