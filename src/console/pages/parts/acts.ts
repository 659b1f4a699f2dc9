/** Acts of staff in pages: one transaction for each, which the audit records, and the words of the act afterwards. */
import { randomUUID } from 'node:crypto'
import { html } from 'hono/html'
import { type Act, type Done, Refused } from '../../../acts/act.ts'
import { inTransaction } from '../../../db/pool.ts'
import type { Acted, Action, Html, Page, PageContext } from '../../page.ts'
import { remember } from '../../remember.ts'
import { foreign } from './foreign.ts'
import { fieldsOf, noSuchPage, onceAction, onceForm } from './forms.ts'

interface ActForm {
  /** Pattern below /console. Its parameters are fields of the act, beside the fields of the form. */
  path: string
  act: Act
  /** The page after the act, below /console. Absent: the parent, `/firms/12` of `/firms/12/folders`. */
  back?: (done: Done) => string
}

/** The path of a request below /console. */
const pathOf = ({ url }: Pick<PageContext, 'url'>) => url.split('?', 1)[0]!.replace('/console', '')

const pathAbove = (context: Pick<PageContext, 'url'>) => pathOf(context).replace(/\/[^/]*$/, '')

/** A form that does an act, once. */
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

/** The page before an act that cannot simply be undone: it says what will happen, and has the button. */
interface Question {
  /** What the button does: `Revoke token 27010`. */
  title: string
  /** What happens, and what does not. */
  says: Html
  /** Further fields. */
  fields?: Html
  /** Path of the page to go back to, below /console. Absent: the parent. */
  back?: string
}

/** The page of a question. Its form is sent to the same path. */
export function confirmation(
  context: Pick<PageContext, 'csrf' | 'url'>,
  { title, says, fields, back = pathAbove(context) }: Question,
): Html {
  return html`<h1>${title}</h1>
${says}
${onceForm(context, pathOf(context), html`${fields ?? ''}<p class="buttons"><button class="grave">${title}</button> <a href="/console${back}">Go back</a></p>`)}`
}

/** The page and the action of an act that asks first. */
export function askedAct({
  title,
  ask,
  ...form
}: ActForm & { title: string; ask: (context: PageContext) => Promise<Question> }): [Page, Action] {
  const render = async (context: PageContext) => confirmation(context, await ask(context))
  return [{ path: form.path, title, render }, actAction(form)]
}

/** Notices that the process remembers, so that a page still shows its notice after a reload. */
const noticesMax = 1_000

/** Words by the names that addresses of pages carry in their place. */
const notices = new Map<string, string>()

/** A secret is on this answer alone, so no other page follows. */
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

/** What an act has done, on the page that follows it. */
export function notice({ query }: Pick<PageContext, 'query'>): Html {
  const says = notices.get(query.get('done') ?? '')
  return says === undefined ? html`` : html`<p class="note" role="status">${foreign(says, 1_000)}</p>`
}
