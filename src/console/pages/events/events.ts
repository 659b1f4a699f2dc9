import { html } from 'hono/html'
import { readId } from '../../../db/id.ts'
import { type EventFilter, type ListedEvent, listEvents } from '../../../events/events.sql.ts'
import { eventKinds, isEventKind } from '../../../events/kinds.ts'
import { table, time } from '../../elements.ts'
import { type Html, type Page, type PageContext, Refusal } from '../../page.ts'
import { outside } from '../parts/outside.ts'
import { beforeIn, choice, field, pageOf, pageRows, pager } from '../parts/paging.ts'

/** Characters of the data of an event that are shown. */
const dataMax = 500

const heads = ['Id', 'At', 'Schema', 'Folder', 'Kind', 'Operation', 'Data']

export const eventsPage: Page = {
  path: '/events',
  title: 'Events',
  navigation: 'Events',
  render: async (context) => {
    const filter = filterIn(context)
    const { schemaId, folderId, name } = filter
    const { rows, last } = pageOf(await listEvents(context.owner, { ...filter, most: pageRows + 1 }))
    return html`<h1>Events</h1>
<form method="get" action="/console/events" class="filter">
${idField('Schema', 'schema', schemaId)}${idField('Folder', 'folder', folderId)}
${field('Kind', choice('name', eventKinds, name, 'any'))}<button>Show</button>
</form>
${table(
  'Events, the newest first',
  heads,
  rows.map((each) => row(context, each)),
  'No such event is kept.',
)}
${pager(context, 'before', last?.id)}`
  },
}

function idField(label: string, name: string, value: string | undefined): Html {
  return field(
    label,
    html`<input name="${name}" value="${value ?? ''}" inputmode="numeric" pattern="[0-9]{1,16}" size="16" autocomplete="off">`,
  )
}

/** @throws {Refusal} that names the parameter */
function filterIn(context: PageContext): Omit<EventFilter, 'most'> {
  const { query } = context
  const idIn = (name: string) => {
    const given = query.get(name)?.trim() || undefined
    const id = given === undefined ? undefined : readId(given)
    if (given !== undefined && id === undefined)
      throw new Refusal(400, `${name} must be an id: 1 to 16 digits`)
    return id
  }
  const name = query.get('name') || undefined
  if (name !== undefined && !isEventKind(name))
    throw new Refusal(400, `name must be a kind of event: ${eventKinds.join(', ')}`)
  return { schemaId: idIn('schema'), folderId: idIn('folder'), name, before: beforeIn(context) }
}

function row(
  context: PageContext,
  { id, createdAt, schemaId, folderId, name, operation, data }: ListedEvent,
): Html {
  const folder = folderId === null ? '' : html`<a href="/console/folders/${folderId}">${folderId}</a>`
  return html`<tr><th scope="row">${id}</th><td>${time(createdAt, context)}</td><td>${schemaId}</td><td>${folder}</td><td>${name}</td>
<td>${operation}</td><td class="text"><code>${outside(data, dataMax)}</code></td></tr>`
}
