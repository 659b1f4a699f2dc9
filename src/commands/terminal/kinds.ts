/** Kinds of values that the options of staff commands take. */
import { type Kind, numberKind } from '../../../packages/terminal/src/command.ts'
import { line } from '../../acts/fields.ts'
import { readId } from '../../db/literal.ts'

/** An id, read without its leading zeros, as rows and other programs have it. */
export const idKind: Kind<string> = {
  takes: 'an id of 1 to 16 digits that is not 0',
  read(text) {
    const id = readId(text)
    return id === '0' ? undefined : id
  },
}

/** A moment, with its time zone: without one, its meaning would depend on the machine. */
export const momentKind: Kind<Date> = {
  takes: 'a day or a moment such as 2026-01-31T08:00:00Z',
  read(text) {
    const isMoment = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(text)
    return isMoment && Number.isFinite(Date.parse(text)) ? new Date(text) : undefined
  },
}

/** The option of commands that list the newest rows. */
export const mostOption = {
  value: 'number',
  is: numberKind('a number', 1, 999_999),
  default: '50',
  help: 'how many',
} as const

/** @throws {Error} that names the option if the text is not a single line; names and reasons must be */
export function checkLine(option: string, text: string): void {
  const { error } = line.safeParse(text)
  if (error) throw new Error(`${option} ${error.issues[0]!.message}`)
}
