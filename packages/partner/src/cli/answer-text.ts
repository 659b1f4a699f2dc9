/** Judges the answers of receivers, and puts them into sentences. */
import { excerptOf } from '../../../terminal/src/printable.ts'

/** A colon and the beginning of an answer; an empty text for an empty answer. */
export function quoted(answer: string | null): string {
  const text = excerptOf(answer ?? '')
  return text === '' ? '' : `: ${text}`
}

/** @param status null if there was no response */
export function isAccepted(status: number | null): boolean {
  return status !== null && status >= 200 && status <= 299
}
