/** Finds or makes a copy in a schema of a PostgreSQL database. Needs the package `pg`. */
import { type Copy, layoutVersion, notThere, type OpenOptions, otherLayout, refused } from '../copy.ts'
import { PostgresCopy } from './postgres-copy.sql.ts'
import { createCopy, dropCopy } from './schema.sql.ts'

type Client = import('pg').Client

const schemaDefault = 'grandlivre_ledger'
const dependentObjectsStillExist = '2BP01'
/** Names are put into statements, so only plain ones are taken. */
const schemaPattern = /^[a-z_][a-z0-9_]{0,62}$/

/**
 * @param to `postgres://user:password@host/database`, with `?schema=` for another schema than grandlivre_ledger
 * @throws {GrandlivreError} COPY-REFUSED: it cannot be opened, is of something else, or of another layout
 */
export async function openPostgres(to: string, options: OpenOptions = {}): Promise<Copy> {
  const { connectionString, schema } = placeOf(to)
  const { host, pathname } = new URL(connectionString)
  const name = `schema ${schema} of ${host}${pathname}`
  const { Client } = await loadPg()
  const client = new Client({ connectionString, application_name: 'grandlivre sync' })
  // A lost connection also fails the statement that waits for it.
  client.on('error', () => {})
  await client.connect().catch((cause: Error) => {
    throw refused(
      `The database of ${name} does not answer: ${cause.message || cause}`,
      'Check the address.',
      cause,
    )
  })
  try {
    // What the bytes of rows depend on, whatever the role or the database has set.
    await client.query(`set datestyle to 'ISO, YMD'; set timezone to 'UTC'; set client_encoding to 'UTF8';
      set search_path to "${schema}"`)
    // Ends the session of a killed process in the middle of a statement, too, where the system can.
    await client.query(`set client_connection_check_interval to '500ms'`).catch(() => {})
    const service = await prepare(client, schema, name, options)
    return new PostgresCopy(client, { name, schema, service }, options.locked)
  } catch (error) {
    await client.end()
    throw error
  }
}

function placeOf(to: string): { connectionString: string; schema: string } {
  if (!URL.canParse(to))
    throw refused('This is no address of a database', 'Write postgres://user@host/database.')
  const url = new URL(to)
  const schema = url.searchParams.get('schema') ?? schemaDefault
  if (!schemaPattern.test(schema))
    throw refused(
      `"${schema}" cannot be the schema of a copy`,
      'Take small letters, digits and underscores, at most 63.',
    )
  url.searchParams.delete('schema')
  return { connectionString: url.href, schema }
}

async function loadPg(): Promise<typeof import('pg')> {
  try {
    const { default: pg } = await import('pg')
    return pg as unknown as typeof import('pg')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw refused('The package pg, which PostgreSQL needs, is not installed', 'Run npm install pg.')
  }
}

/** @returns the address of the service that it is a copy of */
async function prepare(
  client: Client,
  schema: string,
  name: string,
  { isThere = false, again = false }: OpenOptions,
): Promise<string | undefined> {
  await client.query('begin')
  try {
    // Two commands that begin at once make one copy.
    await client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`grandlivre copy ${schema}`])
    const layout = await layoutOf(client, schema, name)
    if (layout !== layoutVersion) {
      if (layout !== undefined && !again) throw otherLayout(name, '<the same address>')
      if (isThere && !again) throw notThere(name, '<the same address>')
      await client.query(`create schema if not exists "${schema}"`)
      if (layout !== undefined) await client.query(dropCopy).catch(dependentsNamed)
      await client.query(createCopy())
    }
    const { rows } = await client.query('select service from grandlivre_copy')
    await client.query('commit')
    return rows[0].service ?? undefined
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

function dependentsNamed(error: Error & { code?: string; detail?: string }): never {
  if (error.code !== dependentObjectsStillExist) throw error
  const which = error.detail?.replaceAll('\n', '; ')
  const message = `The copy cannot be rebuilt because others have made objects on it: ${which}`
  throw refused(message, 'Drop these, rebuild the copy, and create them again.', error)
}

/** Layout 1 named none: it is known by tables that no other program has. @returns undefined where there is nothing yet */
async function layoutOf(client: Client, schema: string, name: string): Promise<number | undefined> {
  const { rows } = await client.query(
    `select to_regclass(quote_ident($1) || '.grandlivre_copy') is not null as "isCopy",
       (select count(*) = 3 from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = $1 and c.relname in ('sync_state', 'movement_rows', 'entry_lines')) as "isFormer",
       exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1) as "hasTables"`,
    [schema],
  )
  const { isCopy, isFormer, hasTables } = rows[0]
  if (isCopy) return (await client.query('select layout from grandlivre_copy')).rows[0].layout
  if (isFormer) return 1
  if (hasTables)
    throw refused(`${name} holds something else`, 'Choose another one: postgres://...?schema=<name>.')
  return undefined
}
