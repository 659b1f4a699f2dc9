/**
 * Acts of staff in pages. Each act is one transaction, which the audit records; the page after it says what the act
 * did.
 *
 * A form takes effect once: it carries a random name, and the process remembers the names of the last forms that it
 * carried out. Otherwise a second click on "Issue" would issue a second token. The first token would no longer be shown
 * anywhere, but stay valid.
 */
import { randomUUID } from 'node:crypto'
import { html } from 'hono/html'
import { type Act, type Done, Refused } from '../../../acts/act.ts'
import { readId } from '../../../db/literal.ts'
import { inTransaction } from '../../../db/pool.ts'
import { form } from '../../elements.ts'
import { type Acted, type Action, type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { remember } from '../../remember.ts'
import { foreign } from './cells.ts'

/** Maximum number of forms that are remembered: more than staff send in a day. */
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

interface ActForm {
  /**
   * Pattern of the path below /console. Its parameters are fields of the act, in addition to the fields of the form.
   */
  path: string
  act: Act
  /** Path of the page after the act, below /console. By default the parent: `/firms/12` for `/firms/12/folders`. */
  back?: (done: Done) => string
}

const pathAbove = ({ path }: Pick<PageContext, 'path'>) => path.replace(/\/[^/]*$/, '')

/** The action of a form that carries out an act. A form that is sent twice acts once. */
export function actAction({ path, act, back }: ActForm): Action {
  return onceAction(path, async (context, form) => {
    const run = actAtPath(act, fieldsOf(form), context)
    const { owner, staff, services } = context
    const { masterKeys } = services
    const done = await inTransaction(owner, (client) => run(client, { staff, masterKeys }))
    return answer(done, back?.(done) ?? pathAbove(context))
  })
}

/** @throws {Refusal} 404 if a parameter of the path is wrong */
function actAtPath(act: Act, fields: Record<string, string>, { params }: PageContext) {
  try {
    return act({ ...fields, ...params })
  } catch (error) {
    const isPath = error instanceof Refused && Object.hasOwn(params, error.field ?? '')
    throw isPath ? noSuchPage() : error
  }
}

/** The page before an act that cannot simply be undone. It says what will happen, and has the button for it. */
interface Question {
  /** Names the act, as on its button: `Revoke token 27010`. */
  title: string
  /** What the act changes, and what it leaves unchanged. */
  says: Html
  /** Further fields of the form. */
  fields?: Html
  /** Path of the page to go back to, below /console. By default the parent. */
  back?: string
}

/** The page of a question. Its form is sent to the page's own path. */
export function confirmation(
  context: Pick<PageContext, 'csrf' | 'path'>,
  { title, says, fields, back = pathAbove(context) }: Question,
): Html {
  return html`<h1>${title}</h1>
${says}
${onceForm(context, context.path, html`${fields ?? ''}<p class="buttons"><button class="grave">${title}</button> <a href="/console${back}">Go back</a></p>`)}`
}

/** The page and the action of an act that asks for confirmation first. */
export function askedAct({
  title,
  ask,
  ...form
}: ActForm & { title: string; ask: (context: PageContext) => Promise<Question> }): [Page, Action] {
  const render = async (context: PageContext) => confirmation(context, await ask(context))
  return [{ path: form.path, title, render }, actAction(form)]
}

/** Maximum number of notices that the process remembers: after a reload, a page still shows its notice. */
const noticesMax = 1_000

/** Texts of notices by random names. The address of a page has the name instead of the text. */
const notices = new Map<string, string>()

/** What the browser gets after an act. A secret is shown only on this answer, so no other page follows it. */
function answer({ says, secret }: Done, back: string): Acted {
  if (secret === undefined) {
    const name = randomUUID()
    remember(notices, name, says, noticesMax)
    return { seeOther: `${back}?done=${name}` }
  }
  const { label, value, use } = secret
  return {
    title: label,
    main: html`<h1>${label}</h1>
<p class="note" role="status">${says}</p>
<p>It is shown only once. ${use} Copy it before you leave this page.</p>
<p><span id="secret-label">${label}</span>: <output class="secret" aria-labelledby="secret-label">${value}</output></p>
<p><a href="/console${back}">Back</a></p>`,
  }
}

/** The notice at the top of a page that says what the act before it has done. */
export function notice({ query }: Pick<PageContext, 'query'>): Html {
  const says = notices.get(query.get('done') ?? '')
  return says === undefined ? html`` : html`<p class="note" role="status">${foreign(says, 1_000)}</p>`
}
