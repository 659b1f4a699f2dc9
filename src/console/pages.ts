/** All pages and acts of the console, in the order of the header. */
import type { RunningAttempts } from '../jobs/running-attempts.ts'
import type { History } from './history.ts'
import type { Route } from './page.ts'
import { exportRoutes } from './pages/exports.ts'
import { folderRoutes } from './pages/folders.ts'
import { partnerRoutes } from './pages/partners.ts'
import { processPage } from './pages/process.ts'
import { subscriptionRoutes } from './pages/subscriptions.ts'

export function routesOf(attempts: RunningAttempts, history: History): Route[] {
  return [
    ...exportRoutes(attempts),
    ...folderRoutes,
    ...partnerRoutes,
    ...subscriptionRoutes,
    processPage(history),
  ]
}
