import { html } from 'hono/html'
import { limits } from '../../../config.ts'
import { type AttemptRecord, listAttempts } from '../../../webhooks/staff.sql.ts'
import { table, time } from '../../elements.ts'
import { type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { idOf } from '../parts/forms.ts'
import { answerText, outside } from '../parts/outside.ts'

export const deliveryPage: Page = {
  path: '/subscriptions/:id/deliveries/:delivery',
  title: 'Delivery',
  render: async (context) => {
    const subscription = idOf(context, 'id', 'subscription')
    const delivery = idOf(context, 'delivery', 'delivery')
    const attempts = await listAttempts(context.owner, subscription, delivery, limits.shownAttemptsMax)
    if (attempts.length === 0)
      throw new Refusal(404, `There was no attempt of a delivery ${delivery} to subscription ${subscription}`)
    const caption = `Attempts: the newest ${limits.shownAttemptsMax}`
    return html`<h1>Delivery ${delivery}</h1>
<p>To <a href="/console/subscriptions/${subscription}">subscription ${subscription}</a></p>
${table(
  caption,
  ['Number', 'At', 'Status', { number: 'After' }, 'Error', 'Beginning of the answer'],
  attempts.map((each) => row(context, each)),
  '',
)}`
  },
}

function row(context: PageContext, { number, at, status, latencyMs, error, answer }: AttemptRecord): Html {
  return html`<tr><th scope="row">${number}</th><td>${time(at, context)}</td><td>${status ?? ''}</td>
<td class="number">${latencyMs} ms</td><td>${error === null ? '' : outside(error, 300)}</td>
<td class="text">${answerText(answer, limits.shownAnswerBytes)}</td></tr>`
}
