import { html } from 'hono/html'
import { codePattern } from '../../../auth/third-parties.sql.ts'
import { subscriptionList } from '../../../lists/subscriptions.ts'
import { countedMax, subscriptionStates } from '../../../webhooks/staff.sql.ts'
import { choiceFilter, type Filter, listPage } from '../parts/list-page.ts'

const partnerFilter: Filter = {
  label: 'Code of the partner',
  input: (name, value) =>
    html`<input name="${name}" value="${value ?? ''}" maxlength="32" autocomplete="off">`,
  read: (text) => codePattern.exec(text.toUpperCase())?.[0],
  takes: 'the code of a partner: up to 32 of A to Z, 0 to 9, - and _',
}

export const subscriptionsPage = listPage(
  { path: '/subscriptions', title: 'Subscriptions' },
  subscriptionList,
  { state: choiceFilter('State', subscriptionStates), partner: partnerFilter },
  { fixed: { counted: countedMax } },
)
