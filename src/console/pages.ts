/** All pages and acts of the console, in the order of the header. */
import type { RunningAttempts } from '../jobs/running-attempts.ts'
import type { Action, Page } from './page.ts'
import { exportActions, exportPages } from './pages/exports.ts'
import { staffActions, staffPages } from './pages/staff-pages.ts'

export interface PageParts {
  attempts: RunningAttempts
}

export function pagesOf({ attempts }: PageParts): { pages: Page[]; actions: Action[] } {
  return {
    pages: [...exportPages(attempts), ...staffPages],
    actions: [...exportActions(), ...staffActions],
  }
}
