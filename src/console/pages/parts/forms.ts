/**
 * Forms of the pages, and reading what they send.
 *
 * A form counts once: it carries a random name, and the process remembers the names of the last forms it has carried out.
 * A second click on "Issue" would otherwise make a second token, and the first, shown nowhere any more, would stay valid.
 */
import { randomUUID } from 'node:crypto'
import { html } from 'hono/html'
import { readId } from '../../../db/id.ts'
import { AppError } from '../../../errors.ts'
import { form } from '../../elements.ts'
import { type Action, type Html, type PageContext, Refusal } from '../../page.ts'

/** Forms whose names are remembered: more than staff send in a day. */
const rememberedMax = 10_000

const carriedOut = new Set<string>()

/** A form that counts once. @param path below /console */
export function onceForm(context: Pick<PageContext, 'csrf'>, path: string, content: Html): Html {
  return form(context, path, html`<input type="hidden" name="once" value="${randomUUID()}">${content}`)
}

/**
 * An action of `onceForm`. A form that was refused may be sent again.
 * @param path pattern below /console
 */
export function onceAction(path: string, run: Action['run']): Action {
  return {
    path,
    run: async (context, fields) => {
      const name = fields.get('once') ?? ''
      if (!/^[\da-f-]{36}$/.test(name))
        throw new Refusal(400, 'The form is incomplete: open its page and send it from there')
      if (carriedOut.has(name))
        throw new Refusal(
          409,
          'This form was sent before, and what it asks for was done. Open its page again to do it once more',
        )
      carriedOut.add(name)
      try {
        return await run(context, fields)
      } catch (error) {
        carriedOut.delete(name)
        throw asRefusal(error)
      } finally {
        forgetOldest()
      }
    },
  }
}

/** A set keeps the order in which its values came. */
function forgetOldest(): void {
  for (const name of carriedOut) {
    if (carriedOut.size <= rememberedMax) return
    carriedOut.delete(name)
  }
}

/** What rooms below refuse for callers of the API is a sentence for staff, too. */
function asRefusal(error: unknown): unknown {
  if (!(error instanceof AppError)) return error
  const { status, message, issues = [], headers } = error
  const sentence = [message, ...issues.map(({ parameter, message: text }) => `${parameter} ${text}`)].join(
    ': ',
  )
  if (status === 404 || status === 409 || status === 429 || status === 503)
    return new Refusal(status, sentence, headers)
  return status === 400 ? new Refusal(400, sentence) : error
}

/** Names and reasons need no more. */
const lineCharactersMax = 500

/** A text of one line, without spaces around it. @throws {Refusal} that names the field */
export function readLine(fields: URLSearchParams, name: string, label: string): string {
  const text = (fields.get(name) ?? '').trim()
  if (text === '') throw new Refusal(400, `${label} must not be empty`)
  if (/\p{Cc}/u.test(text)) throw new Refusal(400, `${label} must be one line, without control characters`)
  if (text.length <= lineCharactersMax) return text
  throw new Refusal(400, `${label} takes at most ${lineCharactersMax} characters, not ${text.length}`)
}

/** @throws {Refusal} that names the field */
export function readChoice<Choice extends string>(
  fields: URLSearchParams,
  name: string,
  label: string,
  choices: readonly Choice[],
): Choice {
  const given = fields.get(name)
  const chosen = choices.find((choice) => choice === given)
  if (chosen === undefined) throw new Refusal(400, `${label} must be one of: ${choices.join(', ')}`)
  return chosen
}

/** @throws {Refusal} that names the field */
export function readIdField(fields: URLSearchParams, name: string, label: string): string {
  const id = readId((fields.get(name) ?? '').trim())
  if (id === undefined || id === '0') throw new Refusal(400, `${label} must be an id: 1 to 16 digits, not 0`)
  return id
}

/** A whole number. @throws {Refusal} that names the field */
export function readNumber(
  fields: URLSearchParams,
  name: string,
  label: string,
  { least, most }: { least: number; most: number },
): number {
  const text = (fields.get(name) ?? '').trim()
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  throw new Refusal(400, `${label} must be a whole number from ${least} to ${most}`)
}

/** The id in a path. @throws {Refusal} if there cannot be such a thing. @param what `folder` */
export function idOf({ params }: Pick<PageContext, 'params'>, name: string, what: string): string {
  const id = readId(params[name] ?? '')
  if (id === undefined || id === '0') throw new Refusal(404, `There is no such ${what}`)
  return id
}
