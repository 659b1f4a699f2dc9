/**
 * The name of a FEC as article A47 A-1 asks for it, without its ending: the SIREN, `FEC`, and the last day of the
 * exercice. A folder without a SIREN is named by its reference if that is nine digits, else by zeros.
 */
export function fecFileStem({
  siret,
  reference,
  exerciceEnd,
}: {
  /** Or a SIREN. */
  siret: string | null
  reference: string | null
  /** `YYYY-MM-DD` */
  exerciceEnd: string
}): string {
  const siren = /^\d{9}/.exec(siret ?? '')?.[0] ?? /^\d{9}$/.exec(reference ?? '')?.[0] ?? '000000000'
  return `${siren}FEC${exerciceEnd.replaceAll('-', '')}`
}
