/** Texts of receivers and events, for terminals. */

const charactersMax = 200

/** The beginning of an answer, after a colon; empty if it is. */
export function quoted(answer: string | null): string {
  const text = onOneLine(answer ?? '')
  if (text === '') return ''
  return `: ${text.length > charactersMax ? `${text.slice(0, charactersMax)}...` : text}`
}

/** Control characters would act on the terminal: they become blanks. */
export function onOneLine(text: string): string {
  return text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
}
