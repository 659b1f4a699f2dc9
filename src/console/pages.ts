/** All pages and acts of the console, in the order of the header. */
import type { RunningAttempts } from '../jobs/running-attempts.ts'
import type { History } from './history/history.ts'
import type { Action, Page } from './page.ts'
import { exportActions, exportPages } from './pages/exports.ts'
import { processPage } from './pages/process.ts'
import { staffActions, staffPages } from './pages/staff-pages.ts'

export function pagesOf(attempts: RunningAttempts, history: History): { pages: Page[]; actions: Action[] } {
  return {
    pages: [...exportPages(attempts), ...staffPages, processPage(history)],
    actions: [...exportActions(), ...staffActions],
  }
}
