import { html } from 'hono/html'
import { readId } from '../../../db/literal.ts'
import { eventKinds } from '../../../events/kinds.ts'
import { eventList } from '../../../lists/events.ts'
import { choiceFilter, type Filter, listPage } from '../parts/list-page.ts'

export const eventsPage = listPage({ path: '/events', title: 'Events' }, eventList, {
  schema: idFilter('Schema'),
  folder: idFilter('Folder'),
  name: choiceFilter('Kind', eventKinds, 'a kind of event'),
})

function idFilter(label: string): Filter {
  return {
    label,
    input: (name, value) =>
      html`<input name="${name}" value="${value ?? ''}" inputmode="numeric" pattern="[0-9]{1,16}" size="16" autocomplete="off">`,
    read: readId,
    takes: 'an id: 1 to 16 digits',
  }
}
