import type { ClientBase } from 'pg'
import { command, type Kind } from '../../packages/terminal/src/command.ts'
import { replayFailed, replayHappened } from '../acts/subscriptions.ts'
import { findFolder } from '../auth/tokens.sql.ts'
import { checkEventPayload, eventKinds } from '../events/kinds.ts'
import { publish } from '../events/publish.ts'
import { eventList } from '../lists/subscriptions.ts'
import { schemaExists } from '../webhooks/staff.sql.ts'
import { carryOut, ownerCommand } from './staff-command.ts'
import { idKind, momentKind, mostOption } from './terminal/kinds.ts'
import { listLines } from './terminal/list-lines.ts'
import type { StaffTerminal } from './terminal/terminal.ts'
import { asOwner, recordAct } from './with-database.ts'

/** The id of a person, below 2^53: many readers of JSON lose digits of larger numbers. */
const personKind: Kind<string> = {
  takes: 'a number from 1 to 2^53-1',
  read(text) {
    const id = idKind.read(text)
    return Number.isSafeInteger(Number(id)) ? id : undefined
  },
}

export const eventCommands = [
  command({
    name: 'event emit',
    summary: 'publish an event of another program',
    options: {
      schema: { value: 'id', required: true, is: idKind, help: 'the tenant in which it happened' },
      folder: {
        value: 'id',
        is: idKind,
        help: 'the folder of the event; by default it is about the whole schema',
      },
      person: { value: 'id', is: personKind, help: 'the person who caused it' },
      name: { value: 'kind', required: true, help: eventKinds.join(', ') },
      operation: {
        value: 'operation',
        required: true,
        help: 'CREATE, UPDATE, DELETE or VOID; each kind has some of them',
      },
      data: { value: 'json', required: true, help: `in the form of the kind, such as '{"id":"4711"}'` },
    },
    run: async (terminal: StaffTerminal, { schema, folder, person, name, operation, data }) => {
      const payload = checkEventPayload({ name, operation, data: parseData(data) })
      await asOwner(terminal, async (client) => {
        await checkScope(client, schema, folder)
        await publish(client, schema, [{ ...payload, folderId: folder ?? null, personId: person ?? null }])
        const details = { name, operation }
        await recordAct(client, { act: 'event emit', schemaId: schema, folderId: folder, details })
        const scope = folder === undefined ? '' : `, folder ${folder}`
        return [`Published: ${name} ${operation} in schema ${schema}${scope}.`]
      })
    },
  }),
  ownerCommand({
    name: 'event list',
    summary: 'list the newest events',
    options: {
      schema: { value: 'id', required: true, is: idKind, help: 'events of this tenant' },
      folder: { value: 'id', is: idKind, help: 'events of one folder' },
      name: { value: 'kind', choices: eventKinds, help: 'events of one kind' },
      most: mostOption,
    },
    lines: async (client, options) => {
      await checkScope(client, options.schema, options.folder)
      return listLines(eventList, await eventList.read(client, options))
    },
  }),
  command({
    name: 'event replay',
    summary: 'send the failed deliveries of a subscription again, or with --from the events of a period',
    options: {
      subscription: { value: 'id', required: true, is: idKind, help: 'as webhook list shows it' },
      from: {
        value: 'moment',
        is: momentKind,
        help: 'events from this moment on, such as 2026-01-31T08:00:00Z',
      },
      to: { value: 'moment', is: momentKind, help: 'events before this moment; by default all until now' },
    },
    run: async (terminal: StaffTerminal, { subscription: id, ...span }) => {
      const words = { id: '--subscription' }
      if (span.from !== undefined) return carryOut(replayHappened, words)(terminal, { id, ...span })
      if (span.to !== undefined) throw new Error('--to requires --from')
      await carryOut(replayFailed, words)(terminal, { id })
    },
  }),
]

function parseData(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch (cause) {
    throw new Error(`--data is not JSON: ${(cause as Error).message}`, { cause })
  }
}

/** @throws {Error} if there is no such schema, or if the folder is not in it */
async function checkScope(client: ClientBase, schemaId: string, folderId: string | undefined): Promise<void> {
  if (!(await schemaExists(client, schemaId))) throw new Error(`There is no schema ${schemaId}`)
  if (folderId === undefined) return
  const folder = await findFolder(client, folderId)
  if (folder?.schemaId !== schemaId) throw new Error(`There is no folder ${folderId} in schema ${schemaId}`)
}
