/** Answers of receivers: whether they accept, and in sentences. */
import { excerptOf } from '../../../terminal/src/printable.ts'

/** The beginning of an answer, after a colon; empty if it is. */
export function quoted(answer: string | null): string {
  const text = excerptOf(answer ?? '')
  return text === '' ? '' : `: ${text}`
}

/** @param status null: there was no response */
export function isAccepted(status: number | null): boolean {
  return status !== null && status >= 200 && status <= 299
}
