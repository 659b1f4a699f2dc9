import { excerptOf } from '../../packages/terminal/src/printable.ts'
import { type EventFilter, type ListedEvent, listEvents } from '../events/events.sql.ts'
import {
  type AttemptRecord,
  type Backlog,
  countedMax,
  type DeliveryFilter,
  type DeliveryRecord,
  listDeliveries,
  listSubscriptions,
  type SubscriptionFilter,
  type SubscriptionRecord,
} from '../webhooks/staff.sql.ts'
import { byId, type Cell, type Facts, folderCell, type PagedList, partnerCell, type Table } from './list.ts'

export const subscriptionList: PagedList<SubscriptionRecord, SubscriptionFilter> = {
  caption: 'Subscriptions, by id',
  none: 'There is no such subscription.',
  columns: {
    Id: ({ id }) => ({ to: `/subscriptions/${id}`, text: id }),
    Partner: ({ partnerCode }) => partnerCell(partnerCode),
    Level: ({ level }) => level,
    Of: (found) => subscriptionScope(found, 5),
    State: subscriptionState,
    Waiting: ({ pending, pendingSince }) => [
      { count: pending, most: countedMax },
      pendingSince === null ? '' : [' since ', { at: pendingSince }],
    ],
    Failed: ({ failed }) => ({ count: failed, most: countedMax }),
    'Delivered/numbered': ({ collected, numbered }) => [{ count: collected }, '/', { count: numbered }],
    Address: ({ postUrl }) => (postUrl === null ? 'read by number' : { foreign: postUrl, most: 60 }),
  },
  read: listSubscriptions,
  ...byId,
}

export function subscriptionFacts(found: SubscriptionRecord, backlog: Backlog): Facts {
  const { level, postUrl, lastSuccessAt } = found
  return {
    Subscription: found.id,
    State: subscriptionState(found),
    Paused: found.isPaused ? 'while its partner is disconnected' : null,
    Suspended: found.isSuspended ? 'until a token that sees it is issued' : null,
    'Failing since': { at: found.failingSince },
    Partner: partnerCell(found.partnerCode),
    'Made by': level === 'staff' ? 'staff' : `a token of level ${level}`,
    Of: subscriptionScope(found),
    Events: { foreign: found.onEvents.join(', '), most: 500 },
    Address: postUrl === null ? 'none: its events are read by number' : { foreign: postUrl, most: 2048 },
    Created: { at: found.createdAt },
    'Last success': lastSuccessAt === null ? 'none' : { at: lastSuccessAt },
    'Events that wait for a delivery': { count: backlog.events, most: backlog.eventsMax },
    'Deliveries that wait': { count: found.pending, most: countedMax },
    'Oldest undelivered': backlog.since === null ? 'nothing waits' : { since: backlog.since },
    'Late by': backlog.lateSeconds === undefined ? 'nothing' : { ms: backlog.lateSeconds * 1000 },
    'Last number given': { count: found.numbered },
    'Last number in a delivery': { count: found.collected },
    'Failed deliveries': { count: found.failed, most: countedMax },
  }
}

function subscriptionScope(
  { schemaId, firmId, folderIds }: SubscriptionRecord,
  most = folderIds.length,
): string {
  if (schemaId === null) return 'all schemas'
  if (folderIds.length === 0) return firmId === null ? `schema ${schemaId}` : `firm ${firmId}`
  const more = folderIds.length > most ? ` and ${folderIds.length - most} more` : ''
  return `folder${folderIds.length > 1 ? 's' : ''} ${folderIds.slice(0, most).join(', ')}${more}`
}

function subscriptionState({ state, failingSince, disabledAt, disabledReason }: SubscriptionRecord): Cell {
  if (state === 'failing') return [{ strong: state }, ' since ', { at: failingSince }]
  if (state === 'disabled')
    return [{ strong: state }, ' ', { at: disabledAt }, ': ', { foreign: disabledReason }]
  if (state === 'paused') return [{ strong: state }, ': its partner is disconnected']
  if (state === 'suspended') return [{ strong: state }, ': no token that sees it is left']
  return state === 'no address' ? 'nothing is posted' : state
}

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
