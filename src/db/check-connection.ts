/**
 * What a connection must stand on before a statement of ours runs on it. Role, search path and date style are set by
 * start-up options, which a pooler may drop without a word: the owner would then answer requests, past row-level
 * security. So each new connection is asked what it is, in one statement (3 ms of the 10 to 15 that it takes to open one),
 * and closed where it is not safe.
 */
import type pg from 'pg'
import type { ClientBase } from 'pg'
import { lookUp } from './look-up.ts'

/** Whom the statements of a connection run as: requests as the service role, staff and migrations as the owner. */
export type Actor = 'service' | 'owner'

/** The role that requests run as. It owns nothing, and row-level security binds it to one tenant at a time. */
export const serviceRole = 'grandlivre_service'

export class UnsafeConnection extends Error {
  /** A sentence for each: what is wrong, and what to do. */
  readonly causes: readonly string[]

  /** @param name of the address: `DATABASE_URL` */
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
  // pg keeps the key that a connection was given under this name; its types do not tell.
  const { processID } = client as ClientBase & { processID: number | null }
  const causes = [
    ...poolerCause(processID, standing.processId),
    ...(actor === 'service' ? roleCauses(standing) : []),
    ...settingCauses(standing),
  ]
  if (causes.length > 0) throw new UnsafeConnection(causes)
}

/**
 * Connects, as one connection outside any pool.
 * @throws {UnsafeConnection} naming every cause; any error leaves no connection
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
 * A pooler that refuses start-up options, as PgBouncer does unless it is told to ignore them, lets no connection
 * through that could be checked. Its refusal says enough.
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
  /** Tables with rows of tenants on which row-level security does not bind the role. */
  unbound: string[]
}

async function readStanding(client: ClientBase): Promise<Standing> {
  // A pool does not listen to a connection it hands out, and an unheard `error` would end the process.
  const ignore = () => {}
  client.on('error', ignore)
  try {
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
  } finally {
    client.off('error', ignore)
  }
}

const withoutPooler =
  'Let the address lead to PostgreSQL itself: advisory locks, LISTEN and settings belong to a session, which a pooler ' +
  'shares out'

/** A pooler hands out keys of its own; PostgreSQL's name the process that serves the connection. */
function poolerCause(keyNames: number | null, processId: number): string[] {
  if (keyNames === processId) return []
  return [
    `A pooler stands before PostgreSQL (the key of the connection names process ${keyNames}, but process ${processId} ` +
      `serves it). ${withoutPooler}.`,
  ]
}

function roleCauses({ role, unbound }: Standing): string[] {
  const isBound = unbound.length === 0
  if (role !== serviceRole)
    return [
      `Requests would run as the role ${role}${isBound ? '' : ', which row-level security does not bind,'} and not as ` +
        `${serviceRole}. The start-up option that sets the role was dropped: let the address lead to PostgreSQL itself.`,
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
        'something sets another at each login: let the address lead to PostgreSQL itself, without such a trigger.',
    )
  if (!dateStyle.startsWith('ISO'))
    causes.push(
      `The date style is ${dateStyle} and not ISO. The start-up option that sets it was dropped, or something sets ` +
        'another at each login: let the address lead to PostgreSQL itself, without such a trigger.',
    )
  return causes
}
