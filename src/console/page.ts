/** The types of pages and acts of the console. `console-app.ts` has the steps of a request that come before them. */
import type { HttpBindings } from '@hono/node-server'
import type { html } from 'hono/html'
import type { Pool } from 'pg'
import type { Services } from '../http/services.ts'

/** HTML from Hono's `html`. A value that is put into it is escaped unless it is such HTML itself. */
export type Html = ReturnType<typeof html>

export interface PageContext {
  services: Services
  /**
   * A pool that connects as the owner of the tables and sees all tenants. It has few connections, so hold them briefly.
   */
  owner: Pool
  /** Who is signed in, under the name that the audit uses for staff: `console alice`. */
  staff: string
  /** The token that forms of this session carry; `form` in elements.ts adds it to them. */
  csrf: string
  /** The parts of the path that the pattern names, such as `id` of `/folders/:id`. */
  params: Record<string, string>
  query: URLSearchParams
  /** The path of the request, below /console. */
  path: string
}

export interface Page {
  /** Pattern of the path below /console: `/folders/:id`. The start page has ''. */
  path: string
  title: string
  /** Text of its link in the header. If absent, other pages link to it. */
  navigation?: string
  /** How often the page is rendered again while a browser shows it. The browser gets it only if it has changed. */
  everyMs?: number
  /** @throws {Refusal} for a mistake of staff, with its status */
  render(context: PageContext): Promise<Html>
}

/** A POST of a form. The console checks its origin and token first. */
export interface Action {
  /** Pattern of the path below /console. A page and an action may have the same one. */
  path: string
  /** @throws {Refusal} for a mistake of staff, with its status */
  run(context: PageContext, form: URLSearchParams): Promise<Acted>
}

export type Route = Page | Action

/** The values that Hono passes along with a request. */
export interface ConsoleEdge {
  Bindings: HttpBindings
}

/**
 * What the browser gets after an act. Usually it is sent to another page, so that a reload repeats nothing (`seeOther`
 * is a path below /console). For a secret that is shown only once, it gets a page of its own.
 */
export type Acted = { seeOther: string } | { title: string; main: Html }

/** A sentence that says what is wrong with a request, and what to do. */
export class Refusal extends Error {
  readonly status: 400 | 401 | 403 | 404 | 405 | 409 | 413 | 415 | 421 | 429 | 500 | 503
  readonly headers: Readonly<Record<string, string>>

  constructor(status: Refusal['status'], message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.name = 'Refusal'
    this.status = status
    this.headers = headers
  }
}
