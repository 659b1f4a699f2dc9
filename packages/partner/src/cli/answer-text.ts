/** Answers of receivers, in sentences. */
import { excerptOf } from '../../../terminal/src/printable.ts'

/** The beginning of an answer, after a colon; empty if it is. */
export function quoted(answer: string | null): string {
  const text = excerptOf(answer ?? '')
  return text === '' ? '' : `: ${text}`
}
