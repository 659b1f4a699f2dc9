/**
 * Checks that a new connection is safe before it is used. Start-up options set its role, search path and date style,
 * and a pooler may silently drop them: requests would then run as the owner, past row-level security. One statement
 * checks each new connection (3 ms of the 10 to 15 that opening one takes); an unsafe one is closed.
 */
import type pg from 'pg'
import type { ClientBase } from 'pg'
import { lookUp } from './look-up.ts'

/** The role that a connection runs as: the service role for requests, the owner for staff and migrations. */
export type Actor = 'service' | 'owner'

/** The role of requests. It owns nothing, and row-level security limits it to one tenant at a time. */
export const serviceRole = 'grandlivre_service'

export class UnsafeConnection extends Error {
  /** One text per cause: the problem and the remedy. */
  readonly causes: readonly string[]

  /** @param name setting with the address: `DATABASE_URL` */
  constructor(causes: readonly string[], name = 'the database') {
    super(
      `The connection to ${name} is not safe to use:\n${causes.map((cause) => `  - ${cause}`).join('\n')}`,
    )
    this.name = 'UnsafeConnection'
    this.causes = causes
  }
}

/** @throws {UnsafeConnection} naming every cause */
export async function checkConnection(client: ClientBase, actor: Actor): Promise<void> {
  const standing = await readStanding(client)
  // pg keeps the key of the connection under this name; its types do not declare it.
  const { processID } = client as ClientBase & { processID: number | null }
  const causes = [
    ...poolerCause(processID, standing.processId),
    ...(actor === 'service' ? roleCauses(standing) : []),
    ...settingCauses(standing),
  ]
  if (causes.length > 0) throw new UnsafeConnection(causes)
}

/**
 * Opens one connection outside any pool.
 * @throws {UnsafeConnection} naming every cause; after any error the connection is closed
 */
export async function connectSafely(client: pg.Client, actor: Actor): Promise<pg.Client> {
  try {
    await client.connect()
    await checkConnection(client, actor)
    return client
  } catch (error) {
    await client.end().catch(() => {})
    throw asUnsafeConnection(error)
  }
}

/**
 * A pooler that refuses start-up options, as PgBouncer does unless configured to ignore them, admits no connection that
 * could be checked. Its refusal is evidence enough.
 */
export function asUnsafeConnection(error: unknown): unknown {
  const isRefusal = error instanceof Error && /unsupported startup parameter/.test(error.message)
  if (!isRefusal) return error
  return new UnsafeConnection([`A pooler refuses our settings (${error.message}). ${withoutPooler}.`])
}

interface Standing {
  processId: number
  role: string
  searchPath: string
  dateStyle: string
  /** Tables of tenants' rows where row-level security does not apply to the role. */
  unbound: string[]
}

async function readStanding(client: ClientBase): Promise<Standing> {
  const { rows } = await client.query<Standing>(
    lookUp({
      text: `select pg_backend_pid() as "processId", current_user::text as role,
       current_setting('search_path') as "searchPath", current_setting('datestyle') as "dateStyle",
       array(
         select c.relname::text from pg_class c
         where c.relnamespace = to_regnamespace('grandlivre') and c.relkind in ('r', 'p')
           and (c.relrowsecurity or exists (
             select from pg_attribute a where a.attrelid = c.oid and a.attname = 'schema_id' and not a.attisdropped))
           and not row_security_active(c.oid)
         order by 1) as unbound`,
    }),
  )
  return rows[0]!
}

const withoutPooler =
  'Use the address of PostgreSQL itself: advisory locks, LISTEN and settings belong to a session, and a pooler shares ' +
  'sessions'

/** Keys of PostgreSQL contain the id of the process that serves the connection; a pooler issues its own. */
function poolerCause(keyNames: number | null, processId: number): string[] {
  if (keyNames === processId) return []
  return [
    `There is a pooler in front of PostgreSQL (the key of the connection names process ${keyNames}, but process ${processId} ` +
      `serves it). ${withoutPooler}.`,
  ]
}

function roleCauses({ role, unbound }: Standing): string[] {
  const isBound = unbound.length === 0
  if (role !== serviceRole)
    return [
      `Requests would run as the role ${role}${isBound ? '' : ', which row-level security does not bind,'} and not as ` +
        `${serviceRole}. The start-up option that sets the role was dropped: use the address of PostgreSQL itself.`,
    ]
  if (isBound) return []
  const tables =
    unbound.length > 3 ? `${unbound.slice(0, 3).join(', ')} and ${unbound.length - 3} more` : unbound
  return [
    `Row-level security does not bind ${serviceRole} on ${tables}. As an administrator: alter role ${serviceRole} ` +
      'nosuperuser nobypassrls; it must own no table, and no table of ours may have row level security disabled.',
  ]
}

function settingCauses({ searchPath, dateStyle }: Standing): string[] {
  const causes: string[] = []
  if (searchPath !== 'grandlivre')
    causes.push(
      `The search path is ${searchPath || 'empty'} and not grandlivre. The start-up option that sets it was dropped, or ` +
        'something sets another at each login: use the address of PostgreSQL itself, without such a trigger.',
    )
  if (!dateStyle.startsWith('ISO'))
    causes.push(
      `The date style is ${dateStyle} and not ISO. The start-up option that sets it was dropped, or something sets ` +
        'another at each login: use the address of PostgreSQL itself, without such a trigger.',
    )
  return causes
}
