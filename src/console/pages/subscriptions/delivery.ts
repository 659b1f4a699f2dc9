import { html } from 'hono/html'
import { limits } from '../../../config.ts'
import { attemptList } from '../../../lists/deliveries.ts'
import { listAttempts } from '../../../webhooks/staff.sql.ts'
import { type Page, Refusal } from '../../page.ts'
import { listTable } from '../parts/cells.ts'
import { idOf } from '../parts/forms.ts'

export const deliveryPage: Page = {
  path: '/subscriptions/:id/deliveries/:delivery',
  title: 'Delivery',
  render: async (context) => {
    const subscription = idOf(context, 'id', 'subscription')
    const delivery = idOf(context, 'delivery', 'delivery')
    const most = limits.shownAttemptsMax
    const attempts = await listAttempts(context.owner, {
      subscriptionId: subscription,
      deliveryId: delivery,
      most,
    })
    if (attempts.length === 0)
      throw new Refusal(404, `There was no attempt of a delivery ${delivery} to subscription ${subscription}`)
    return html`<h1>Delivery ${delivery}</h1>
<p>To <a href="/console/subscriptions/${subscription}">subscription ${subscription}</a></p>
${listTable(context, attemptList, attempts, { caption: `Attempts: the newest ${most}` })}`
  },
}
