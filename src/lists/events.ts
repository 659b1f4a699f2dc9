import { type EventFilter, type ListedEvent, listEvents } from '../events/events.sql.ts'
import { byId, type PagedList } from './list.ts'

export const eventList: PagedList<ListedEvent, EventFilter> = {
  caption: 'Events, the newest first',
  none: 'No such event is kept.',
  columns: {
    Id: ({ id }) => id,
    At: ({ createdAt }) => ({ at: createdAt }),
    Schema: ({ schemaId }) => schemaId,
    Folder: ({ folderId }) => (folderId === null ? null : { to: `/folders/${folderId}`, text: folderId }),
    Kind: ({ name }) => ({ theirs: name }),
    Operation: ({ operation }) => operation,
    Data: ({ data }) => ({ theirs: data, most: 500 }),
  },
  read: listEvents,
  ...byId,
}
