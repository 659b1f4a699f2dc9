/**
 * Checks that a new connection is safe before it is used. Its role, search path and date style come from start-up
 * options, which a pooler may silently drop, or from the settings of its login, which somebody may forget. Requests
 * would then run as the owner, and row-level security would not limit them. One statement checks each new connection (3
 * ms of the 10 to 15 that opening a connection takes); an unsafe connection is closed.
 *
 * Where a pooler may be on the way, the next transaction may run in another session, which is not checked. So the login
 * itself must be harmless there: it owns nothing, and row-level security binds it whatever role a session has.
 */

import type pg from 'pg'
import type { ClientBase } from 'pg'
import { lookUp } from './statement.ts'

/** The role that a connection runs as: the service role for requests, the owner for staff and migrations. */
export type Actor = 'service' | 'owner'

/** The role of requests. It owns nothing, and row-level security limits it to one tenant at a time. */
export const serviceRole = 'grandlivre_service'

interface Expected {
  actor: Actor
  isPooled?: boolean
  /** How long a pooler may take to give the connection a session. */
  waitMs?: number | undefined
}

export class UnsafeConnection extends Error {
  /** One text per cause: the problem and the remedy. */
  readonly causes: readonly string[]

  /** @param name setting that contains the address: `DATABASE_URL` */
  constructor(causes: readonly string[], name = 'the database') {
    super(
      `The connection to ${name} is not safe to use:\n${causes.map((cause) => `  - ${cause}`).join('\n')}`,
    )
    this.name = 'UnsafeConnection'
    this.causes = causes
  }
}

/** @throws {UnsafeConnection} naming every cause */
export async function checkConnection(client: ClientBase, expected: Expected): Promise<void> {
  const facts = await readConnectionFacts(client, expected.waitMs)
  const causes = expected.isPooled ? causesThroughPooler(facts) : causesOf(client, expected.actor, facts)
  if (causes.length > 0) throw new UnsafeConnection(causes)
}

/**
 * Opens one connection outside any pool. A lost connection emits `error`; without a listener, that would end the
 * process.
 * @throws {UnsafeConnection} naming every cause; after any error the connection is closed
 */
export async function connectSafely(client: pg.Client, expected: Expected): Promise<pg.Client> {
  client.on('error', () => {})
  try {
    await client.connect()
    await checkConnection(client, expected)
    return client
  } catch (error) {
    await client.end().catch(() => {})
    throw asUnsafeConnection(error)
  }
}

/**
 * Turns a pooler's refusal of start-up options into an `UnsafeConnection`. PgBouncer refuses them unless configured to
 * ignore them. No connection can then be opened to be checked; the refusal is evidence enough.
 */
export function asUnsafeConnection(error: unknown): unknown {
  const isRefusal = error instanceof Error && /unsupported startup parameter/.test(error.message)
  if (!isRefusal) return error
  return new UnsafeConnection([`A pooler refuses our settings (${error.message}). ${withoutPooler}.`])
}

interface ConnectionFacts {
  processId: number
  login: string
  role: string
  searchPath: string
  dateStyle: string
  /** Tables that have rows of tenants but whose row-level security does not bind the role. */
  unbound: string[]
  /**
   * Whether the login, with any of its roles, escapes row-level security: it owns tables, is a superuser or has
   * BYPASSRLS.
   */
  isLoginUnbound: boolean
}

async function readConnectionFacts(client: ClientBase, waitMs?: number): Promise<ConnectionFacts> {
  const { rows } = await client.query<ConnectionFacts>(
    lookUp({
      text: `select pg_backend_pid() as "processId", session_user::text as login, current_user::text as role,
       current_setting('search_path') as "searchPath", current_setting('datestyle') as "dateStyle",
       array(
         select c.relname::text from pg_class c
         where c.relnamespace = to_regnamespace('grandlivre') and c.relkind in ('r', 'p')
           and (c.relrowsecurity or exists (
             select from pg_attribute a where a.attrelid = c.oid and a.attname = 'schema_id' and not a.attisdropped))
           and not row_security_active(c.oid)
         order by 1) as unbound,
       (select r.rolsuper or r.rolbypassrls or exists (
           select from pg_class c
           where c.relnamespace = to_regnamespace('grandlivre') and c.relkind in ('r', 'p')
             and pg_has_role(r.oid, c.relowner, 'MEMBER'))
         from pg_roles r where r.rolname = session_user) as "isLoginUnbound"`,
      ...(waitMs === undefined ? {} : { waitMs }),
    }),
  )
  return rows[0]!
}

function causesOf(client: ClientBase, actor: Actor, facts: ConnectionFacts): string[] {
  // pg keeps the key of the connection under this name; its types do not declare it.
  const { processID } = client as ClientBase & { processID: number | null }
  return [
    ...poolerCause(processID, facts.processId),
    ...(actor === 'service' ? roleCauses(facts) : []),
    ...settingCauses(facts),
  ]
}

const withoutPooler =
  'Set DIRECT_DATABASE_URL to the address of PostgreSQL itself: advisory locks, LISTEN and settings belong to a session, ' +
  'and a pooler shares sessions'

/**
 * The cause if the connection leads through a pooler: keys of PostgreSQL contain the id of the process that serves the
 * connection, while a pooler issues its own.
 */
function poolerCause(keyNames: number | null, processId: number): string[] {
  if (keyNames === processId) return []
  return [
    `There is a pooler in front of PostgreSQL (the key of the connection names process ${keyNames}, but process ${processId} ` +
      `serves it). ${withoutPooler}.`,
  ]
}

function roleCauses({ role, unbound }: ConnectionFacts): string[] {
  const isBound = unbound.length === 0
  if (role !== serviceRole)
    return [
      `Requests would run as the role ${role}${isBound ? '' : ', which row-level security does not bind,'} and not as ` +
        `${serviceRole}. The start-up option that sets the role was dropped: use the address of PostgreSQL itself.`,
    ]
  return isBound ? [] : [unboundCause(unbound)]
}

function unboundCause(unbound: readonly string[]): string {
  const tables =
    unbound.length > 3 ? `${unbound.slice(0, 3).join(', ')} and ${unbound.length - 3} more` : unbound
  return (
    `Row-level security does not bind ${serviceRole} on ${tables}. As an administrator: alter role ${serviceRole} ` +
    'nosuperuser nobypassrls; it must own no table, and no table of Grandlivre may have row level security disabled.'
  )
}

function settingCauses({ searchPath, dateStyle }: ConnectionFacts): string[] {
  const wrong = [
    ...(searchPath === 'grandlivre' ? [] : [`search path is ${searchPath || 'empty'} and not grandlivre`]),
    ...(dateStyle.startsWith('ISO') ? [] : [`date style is ${dateStyle} and not ISO`]),
  ]
  return wrong.map(
    (setting) =>
      `The ${setting}. The start-up option that sets it was dropped, or something sets another at each login: use the ` +
      'address of PostgreSQL itself, without such a trigger.',
  )
}

/**
 * No start-up option is sent through a pooler, so the settings of the login have to bring role, search path and date
 * style.
 */
function causesThroughPooler(facts: ConnectionFacts): string[] {
  const { login, role, searchPath, dateStyle, unbound, isLoginUnbound } = facts
  if (isLoginUnbound)
    return [
      `The login ${login} is one that row-level security does not bind, whatever its role: it owns tables of Grandlivre, or is ` +
        'above it. Sessions of a pooler may lose their role, so use a login that owns nothing. As an administrator: ' +
        `create role web login password '...'; ${loginSettings('web')}`,
    ]
  const missing = [
    ...(role === serviceRole ? [] : [`the role ${role} and not ${serviceRole}`]),
    ...(searchPath === 'grandlivre' ? [] : [`the search path ${searchPath || 'empty'} and not grandlivre`]),
    ...(dateStyle.startsWith('ISO') ? [] : [`the date style ${dateStyle} and not ISO`]),
  ]
  const causes = missing.map((what) => `Requests would run with ${what}.`)
  if (causes.length > 0)
    causes.push(
      'With DIRECT_DATABASE_URL, the login brings these settings, since a pooler drops those of a connection. As an ' +
        `administrator: ${loginSettings(login)} Then let the pooler open new connections (PgBouncer: RECONNECT).`,
    )
  else if (unbound.length > 0) causes.push(unboundCause(unbound))
  return causes
}

/** The statements that give a login the settings that its sessions need behind a pooler. */
function loginSettings(login: string): string {
  const name = /^[a-z_][a-z0-9_]*$/.test(login) ? login : `"${login.replaceAll('"', '""')}"`
  return [
    `grant ${serviceRole} to ${name} with set true;`,
    `alter role ${name} set role = '${serviceRole}';`,
    `alter role ${name} set search_path = grandlivre;`,
    `alter role ${name} set datestyle = ISO;`,
  ].join(' ')
}
