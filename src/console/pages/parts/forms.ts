/**
 * Forms of the pages, and the ids in their paths.
 *
 * A form takes effect once: it carries a random name, and the process remembers the names of the last forms that it
 * carried out. Otherwise a second click on "Issue" would issue a second token. The first token would no longer be shown
 * anywhere, but stay valid.
 */
import { randomUUID } from 'node:crypto'
import { html } from 'hono/html'
import { readId } from '../../../db/literal.ts'
import { form } from '../../elements.ts'
import { type Action, type Html, type PageContext, Refusal } from '../../page.ts'
import { remember } from '../../remember.ts'

/** Most names of forms that are remembered: more than staff send in a day. */
const formsMax = 10_000

const carriedOut = new Map<string, true>()

/** A form that takes effect once. @param path below /console */
export function onceForm(context: Pick<PageContext, 'csrf'>, path: string, content: Html): Html {
  return form(context, path, html`<input type="hidden" name="once" value="${randomUUID()}">${content}`)
}

/**
 * The action of a `onceForm`. A form that was refused may be sent again.
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
      remember(carriedOut, name, true, formsMax)
      try {
        return await run(context, fields)
      } catch (error) {
        carriedOut.delete(name)
        throw error
      }
    },
  }
}

/** The fields that are not empty. If several boxes of one name are checked, their values are joined by commas. */
export function fieldsOf(form: URLSearchParams): Record<string, string> {
  const given = [...form.keys()].map((name) => [name, form.getAll(name).join(',')] as const)
  return Object.fromEntries(given.filter(([, value]) => value.trim() !== ''))
}

export const noSuchPage = () => new Refusal(404, 'There is no such page.')

/** The id in a path. @throws {Refusal} if it cannot be an id */
export function idOf({ params }: Pick<PageContext, 'params'>, name = 'id'): string {
  const id = readId(params[name] ?? '')
  if (id === undefined || id === '0') throw noSuchPage()
  return id
}
