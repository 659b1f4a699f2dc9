import {
  type Backlog,
  countedMax,
  listSubscriptions,
  type SubscriptionFilter,
  type SubscriptionRecord,
} from '../webhooks/staff.sql.ts'
import { type Cell, type Facts, partnerCell } from './cell.ts'
import { byId, type PagedList } from './list.ts'

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
