/** The pages of folders, partners, subscriptions and events, and what staff do there. */
import type { Action, Page } from '../page.ts'
import { eventsPage } from './events/events.ts'
import * as firms from './folders/firm.ts'
import { folderPage, moveFolder } from './folders/folder.ts'
import { foldersPage } from './folders/list.ts'
import * as partnerActs from './partners/acts.ts'
import { partnersPage } from './partners/list.ts'
import { partnerPage } from './partners/partner.ts'
import * as subscriptionActs from './subscriptions/acts.ts'
import { deliveryPage } from './subscriptions/delivery.ts'
import { subscriptionsPage } from './subscriptions/list.ts'
import { subscriptionPage } from './subscriptions/subscription.ts'

/** Acts that ask first, on a page of their own. */
const asked = [
  moveFolder,
  partnerActs.disconnectPartner,
  partnerActs.rotateSecret,
  partnerActs.limitPartner,
  partnerActs.revokeToken,
  subscriptionActs.enableSubscription,
  subscriptionActs.disableSubscription,
  subscriptionActs.replayFailedDeliveries,
]

export const staffPages: readonly Page[] = [
  firms.firmsPage,
  firms.firmPage,
  foldersPage,
  folderPage,
  partnersPage,
  partnerPage,
  subscriptionsPage,
  subscriptionPage,
  deliveryPage,
  eventsPage,
  ...asked.map(({ page }) => page),
]

export const staffActions: readonly Action[] = [
  firms.createFirm,
  firms.createFolder,
  partnerActs.createPartner,
  partnerActs.reconnectPartner,
  partnerActs.issueToken,
  subscriptionActs.replayEvents,
  subscriptionActs.pingSubscription,
  ...asked.map(({ action }) => action),
]
