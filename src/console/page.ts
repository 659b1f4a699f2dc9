/** What a page and an act of the console are. `console-app.ts` has the steps of a request before them. */
import type { HttpBindings } from '@hono/node-server'
import type { html } from 'hono/html'
import type { Pool } from 'pg'
import type { Services } from '../http/services.ts'

/** HTML of Hono's `html`: what is put into it is escaped, unless it is such HTML itself. */
export type Html = ReturnType<typeof html>

export interface PageContext {
  services: Services
  /** Connects as the owner of the tables: sees all tenants. It has few connections, so hold them briefly. */
  owner: Pool
  /** Who is signed in, as the audit names staff: `console alice`. */
  staff: string
  /** The token that forms of this session carry; `form` of elements.ts puts it there. */
  csrf: string
  /** The part of the path that the pattern names: `/folders/:id`. */
  params: Record<string, string>
  query: URLSearchParams
  /** Path and query of the request. */
  url: string
}

export interface Page {
  /** Pattern below /console: `/folders/:id`. The start page has ''. */
  path: string
  title: string
  /** Its link in the header. Absent: reached by links of other pages. */
  navigation?: string
  /** The page is rendered again this often while a browser shows it, and sent to it where it differs. */
  everyMs?: number
  /** @throws {Refusal} what staff did wrong, with its status */
  render(context: PageContext): Promise<Html>
}

/** A POST of a form, whose origin and token are checked. */
export interface Action {
  /** Pattern below /console; pages and actions may share one. */
  path: string
  /** @throws {Refusal} what staff did wrong, with its status */
  run(context: PageContext, form: URLSearchParams): Promise<Acted>
}

export type Route = Page | Action

/** What Hono carries with a request. */
export interface ConsoleEdge {
  Bindings: HttpBindings
}

/**
 * What follows an act: another page, so that a reload repeats nothing (its path is below /console); or, for a secret
 * that is shown only once, a page of its own.
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
