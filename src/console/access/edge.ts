import type { HttpBindings } from '@hono/node-server'
import type { Session } from '../../auth/console-keys.sql.ts'

/** What Hono carries with a request of the console. */
export interface ConsoleEdge {
  Bindings: HttpBindings
  Variables: {
    /** Undefined where nobody is signed in. */
    session: Session | undefined
  }
}
