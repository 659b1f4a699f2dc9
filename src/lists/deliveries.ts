import { excerptOf } from '../../packages/terminal/src/printable.ts'
import {
  type AttemptRecord,
  type DeliveryFilter,
  type DeliveryRecord,
  listDeliveries,
} from '../webhooks/staff.sql.ts'
import type { Cell } from './cell.ts'
import { byId, type PagedList, type Table } from './list.ts'

export const deliveryList: PagedList<DeliveryRecord, DeliveryFilter> = {
  caption: 'Deliveries, the newest first',
  none: 'No such delivery is kept.',
  columns: {
    Id: ({ subscriptionId, id }) => ({ to: `/subscriptions/${subscriptionId}/deliveries/${id}`, text: id }),
    Schema: ({ schemaId }) => schemaId,
    Events: ({ events, firstEvent, lastEvent }) => [{ count: events }, ` (${firstEvent} to ${lastEvent})`],
    Numbers: ({ firstSequence, lastSequence }) => firstSequence && `${firstSequence} to ${lastSequence}`,
    State: ({ state, isReplay }) => `${state}${isReplay ? ', replayed' : ''}`,
    Attempts: ({ attempts }) => ({ count: attempts }),
    Answer: ({ status, error }) => (status === null ? errorOf(error) : String(status)),
    Made: ({ createdAt }) => ({ at: createdAt }),
    Ended: ({ finishedAt, nextAttemptAt }) =>
      finishedAt ? { at: finishedAt } : ['next ', { at: nextAttemptAt }],
  },
  read: listDeliveries,
  ...byId,
}

export const attemptList: Table<AttemptRecord> = {
  caption: 'Attempts, the newest last',
  none: 'There was no attempt.',
  columns: {
    Number: ({ number }) => String(number),
    At: ({ at }) => ({ at }),
    Status: ({ status }) => (status === null ? null : String(status)),
    After: ({ latencyMs }) => ({ ms: latencyMs }),
    Error: ({ error }) => errorOf(error),
    'Beginning of the answer': ({ answer }) => ({ answer }),
  },
}

function errorOf(error: string | null): Cell {
  return { foreign: excerptOf(error ?? ''), most: 300 }
}
