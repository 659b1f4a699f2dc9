/** Kinds of values that staff commands take. */
import { type Kind, numberKind } from '../../../packages/terminal/src/command.ts'
import { line } from '../../acts/fields.ts'
import { readId } from '../../db/literal.ts'

/** The id without leading zeros, as rows and other programs have it. */
export const idKind: Kind<string> = {
  takes: 'an id of 1 to 16 digits that is not 0',
  read(text) {
    const id = readId(text)
    return id === '0' ? undefined : id
  },
}

/** A time zone is required, since a moment without one depends on the machine. */
export const momentKind: Kind<Date> = {
  takes: 'a day or a moment such as 2026-01-31T08:00:00Z',
  read(text) {
    const isMoment = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(text)
    return isMoment && Number.isFinite(Date.parse(text)) ? new Date(text) : undefined
  },
}

/** For commands that list the newest rows. */
export const mostOption = {
  value: 'number',
  is: numberKind('a number', 1, 999_999),
  default: '50',
  help: 'how many',
} as const

/** @throws {Error} that names the option, if the text is not one line, as names and reasons are */
export function checkLine(option: string, text: string): void {
  const { error } = line.safeParse(text)
  if (error) throw new Error(`${option} ${error.issues[0]!.message}`)
}
