/**
 * Forms of the pages, and the ids in their paths.
 *
 * A form counts once: it carries a random name, and the process remembers the names of the last forms it has carried out.
 * A second click on "Issue" would otherwise make a second token, and the first, shown nowhere any more, would stay valid.
 */
import { randomUUID } from 'node:crypto'
import { html } from 'hono/html'
import { Refused } from '../../../acts/act.ts'
import { readId } from '../../../db/literal.ts'
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

/** What rooms below refuse is a sentence for staff. */
function asRefusal(error: unknown): unknown {
  if (error instanceof Refused) {
    const { status, field, message } = error
    return new Refusal(status, field === undefined ? message : `${field} ${message}`)
  }
  if (!(error instanceof AppError)) return error
  const { status, message, issues = [], headers } = error
  const sentence = [message, ...issues.map(({ parameter, message: text }) => `${parameter} ${text}`)].join(
    ': ',
  )
  if (status === 404 || status === 409 || status === 429 || status === 503)
    return new Refusal(status, sentence, headers)
  return status === 400 ? new Refusal(400, sentence) : error
}

/** A field that is left empty is not given. One of several boxes has the values of those that are checked, with commas. */
export function fieldsOf(form: URLSearchParams): Record<string, string> {
  const given = [...form.keys()].map((name) => [name, form.getAll(name).join(',')] as const)
  return Object.fromEntries(given.filter(([, value]) => value.trim() !== ''))
}

/** The id in a path. @throws {Refusal} if there cannot be such a thing. @param what `folder` */
export function idOf({ params }: Pick<PageContext, 'params'>, name: string, what: string): string {
  const id = readId(params[name] ?? '')
  if (id === undefined || id === '0') throw new Refusal(404, `There is no such ${what}`)
  return id
}
