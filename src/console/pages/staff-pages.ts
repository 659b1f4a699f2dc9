/** The pages of folders, partners, subscriptions and events, and what staff do there. */
import type { Action, Page } from '../page.ts'
import { eventsPage } from './events/events.ts'
import { folderPage } from './folders/folder.ts'
import { foldersPage } from './folders/list.ts'
import * as partnerActs from './partners/acts.ts'
import { createPartner, partnersPage } from './partners/list.ts'
import { partnerPage } from './partners/partner.ts'
import * as subscriptionActs from './subscriptions/acts.ts'
import { deliveryPage } from './subscriptions/delivery.ts'
import { subscriptionsPage } from './subscriptions/list.ts'
import { subscriptionPage } from './subscriptions/subscription.ts'

export const staffPages: readonly Page[] = [
  foldersPage,
  folderPage,
  partnersPage,
  partnerPage,
  partnerActs.disconnectPage,
  partnerActs.rotateSecretPage,
  partnerActs.revokeTokenPage,
  subscriptionsPage,
  subscriptionPage,
  deliveryPage,
  subscriptionActs.enablePage,
  subscriptionActs.disablePage,
  subscriptionActs.replayFailedPage,
  eventsPage,
]

export const staffActions: readonly Action[] = [
  createPartner,
  partnerActs.disconnectPartner,
  partnerActs.reconnectPartner,
  partnerActs.rotateSecret,
  partnerActs.issueTokenAction,
  partnerActs.revokeTokenAction,
  subscriptionActs.enableAction,
  subscriptionActs.disableAction,
  subscriptionActs.replayFailedAction,
  subscriptionActs.replayAction,
  subscriptionActs.pingAction,
]
