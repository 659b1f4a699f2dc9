/** Fields of acts. Each message continues a sentence that begins with the name of the field. */
import { z } from 'zod'
import { type TokenGroup, tokenGroups } from '../auth/callers.sql.ts'
import { codePattern } from '../auth/third-parties.sql.ts'
import { isId, readId } from '../db/literal.ts'

/** Metadata of a field: how the act's command takes it. */
export interface OptionWords {
  help?: string
  /** The name of the value in the help; by default the name of the field. */
  value?: string
  /** What the field takes, for a refusal: `a number from 1 to 10`. If absent, the message of the field is shown. */
  takes?: string
  /** The value if the option is not given, written as staff would type it. */
  default?: string
}

/** Maximum number of characters of a name or reason. */
export const lineCharactersMax = 500

/**
 * A name or a reason, without control characters: lists show it in one line and errors quote it, and such characters
 * would garble both.
 */
export const line = z
  .string('must not be empty')
  .trim()
  .min(1, 'must not be empty')
  .regex(/^\P{Cc}*$/u, 'must be one line of text, without control characters')
  .max(lineCharactersMax, {
    error: ({ input }) => `takes at most ${lineCharactersMax} characters, not ${String(input).length}`,
  })

/** The rule for codes of partners, in the words of forms and of the help. */
export const codeText = 'up to 32 of A to Z, 0 to 9, - and _'

const isNoCode = `takes ${codeText}, beginning with a letter or digit`

export const code = z.string(isNoCode).trim().regex(codePattern, isNoCode)

const isNoExportId = 'must be an id of an export: export_ and what follows it'

export const exportId = z.string(isNoExportId).regex(/^export_\w+$/, isNoExportId)

const isNoId = 'must be an id: 1 to 16 digits, not 0'

export const id = z
  .string(isNoId)
  .trim()
  .refine((text) => isId(text) && Number(text) > 0, isNoId)
  .transform((text) => readId(text)!)
  .meta({ value: 'id', takes: 'an id of 1 to 16 digits that is not 0' })

const isNoGroups = `must be some of these, with commas between them: ${tokenGroups.join(', ')}`

export const groups = z
  .string(isNoGroups)
  .transform((text) => [...new Set(text.split(',').map((word) => word.trim()))])
  .refine(
    (words): words is TokenGroup[] => words.every((word) => tokenGroups.some((group) => group === word)),
    isNoGroups,
  )

/** Maximum number of days until something ends. A larger number may be a year, typed by mistake. */
const daysMax = 1_825

const isNoEnd = `must be 1 to ${daysMax} days, or a later day or moment such as 2031-01-31T08:00:00Z`
const moment = z.union([z.iso.date(), z.iso.datetime({ offset: true })])

/** When something ends: a number of days from now, or a moment. A day without a time means its beginning in UTC. */
export const end = z
  .string(isNoEnd)
  .trim()
  .transform((text) => {
    const days = /^\d+$/.test(text) && Number(text) <= daysMax
    return days ? Date.now() + Number(text) * 86_400_000 : Date.parse(moment.safeParse(text).data ?? '')
  })
  .refine((at) => at > Date.now() && at < Date.UTC(10_000), isNoEnd)
  .transform((at) => new Date(at))

export function choice<const Choices extends readonly string[]>(choices: Choices) {
  return z.enum(choices, `must be one of: ${choices.join(', ')}`)
}

/**
 * A whole number, given as digits by a form or as a number by an option. @param what names it, such as `a number of
 * hours`
 */
export function wholeNumber(least: number, most: number, what = 'a number') {
  const message = `must be a whole number from ${least} to ${most}`
  return z
    .preprocess(
      (given) => (typeof given === 'string' && /^\d+$/.test(given.trim()) ? Number(given) : given),
      z.number(message).int(message).min(least, message).max(most, message),
    )
    .meta({ value: 'number', takes: `${what} from ${least} to ${most}` })
}
