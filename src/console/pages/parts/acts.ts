/** Acts of staff in pages: one transaction for each, which the audit records, and the words of the act afterwards. */
import { html } from 'hono/html'
import { type Act, type Done, Refused } from '../../../acts/act.ts'
import { inTransaction } from '../../../db/pool.ts'
import { type Acted, type Action, type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { fieldsOf, onceAction, onceForm } from './forms.ts'
import { noticed } from './notices.ts'

interface ActForm {
  /** Pattern below /console. What it names is a field of the act, beside those of the form. */
  path: string
  act: Act<string>
  /** The page to go to afterwards, below /console. */
  back: (done: Done) => string
}

/** A form that does an act, once. */
export function actAction({ path, act, back }: ActForm): Action {
  return onceAction(path, async (context, form) => {
    const run = actAtPath(act, fieldsOf(form), context)
    const { owner, staff, services } = context
    const { masterKeys } = services
    const done = await inTransaction(owner, (client) => run(client, { staff, masterKeys }))
    return answer(done, back(done))
  })
}

/** @throws {Refusal} if what the path names cannot be */
function actAtPath(act: Act<string>, fields: Record<string, string>, { params }: PageContext) {
  try {
    return act({ ...fields, ...params })
  } catch (error) {
    const isPath = error instanceof Refused && Object.hasOwn(params, error.field ?? '')
    throw isPath ? new Refusal(404, 'There is no such page.') : error
  }
}

/** The page before an act that cannot simply be undone: it says what will happen and has the button. No script. */
export interface Question {
  /** What the button does: `Revoke token 27010`. */
  title: string
  /** What happens, and what does not. */
  says: Html
  /** Further fields. */
  fields?: Html
  /** Path of the page to go back to, below /console. */
  back: string
}

/** Its form is sent to the path of its page. */
export function confirmation(
  context: Pick<PageContext, 'csrf' | 'url'>,
  { title, says, fields, back }: Question,
): Html {
  const path = context.url.split('?', 1)[0]!.replace('/console', '')
  return html`<h1>${title}</h1>
${says}
${onceForm(context, path, html`${fields ?? ''}<p class="buttons"><button class="grave">${title}</button> <a href="/console${back}">Go back</a></p>`)}`
}

/** Such a form on a page of its own, for an act that cannot simply be undone. */
export function askedAct({
  title,
  ask,
  ...form
}: ActForm & { title: string; ask: (context: PageContext) => Promise<Question> }): {
  page: Page
  action: Action
} {
  const render = async (context: PageContext) => confirmation(context, await ask(context))
  return { page: { path: form.path, title, render }, action: actAction(form) }
}

/** A secret is on this answer alone, so no other page follows. */
function answer({ says, secret }: Done, back: string): Acted {
  if (secret === undefined) return { seeOther: noticed(back, says) }
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
