import { type EventFilter, type ListedEvent, listEvents } from '../events/events.sql.ts'
import { folderCell } from './cell.ts'
import { byId, type PagedList } from './list.ts'

export const eventList: PagedList<ListedEvent, EventFilter> = {
  caption: 'Events, the newest first',
  none: 'No such event is kept.',
  columns: {
    Id: ({ id }) => id,
    At: ({ createdAt }) => ({ at: createdAt }),
    Schema: ({ schemaId }) => schemaId,
    Folder: ({ folderId }) => folderCell(folderId),
    Kind: ({ name }) => ({ foreign: name }),
    Operation: ({ operation }) => operation,
    Data: ({ data }) => ({ foreign: data, most: 500 }),
  },
  read: listEvents,
  ...byId,
}
