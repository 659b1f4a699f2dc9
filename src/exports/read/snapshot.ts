/**
 * One state of the database, seen through two connections: what one export reads is consistent, whatever is
 * committed meanwhile. Both are bound to one tenant and cannot write.
 */
import type pg from 'pg'
import { idLiteral, textLiteral } from '../../db/literal.ts'
import { connect } from '../../db/pool.ts'

export interface Snapshot {
  first: pg.PoolClient
  second: pg.PoolClient
  /** The moment whose state it shows, epoch milliseconds by the clock of the database. */
  at: number
  /**
   * Gives the connections back. With an error they are closed instead: one that is still sending rows could not be
   * used again, and its closing ends the query at the database. Only the first call counts.
   */
  close(error?: Error): Promise<void>
}

export async function openSnapshot(pool: pg.Pool, schemaId: string): Promise<Snapshot> {
  // A connection that dies outside a query tells only its listeners; the next query reports it to the export.
  const ignore = () => {}
  const first = await connect(pool)
  // From the start: an `error` without a listener, while the second one is opened, would end the process.
  first.on('error', ignore)
  let second: pg.PoolClient
  try {
    second = await connect(pool)
  } catch (error) {
    first.off('error', ignore)
    first.release()
    throw error
  }
  second.on('error', ignore)
  const clients = [first, second]
  let closed = false
  const close = async (error?: Error): Promise<void> => {
    if (closed) return
    closed = true
    if (!error) await Promise.all(clients.map((client) => client.query('commit')))
    for (const client of clients) {
      // A discarded connection may still fail while it is being ended.
      if (!error) client.off('error', ignore)
      client.release(error)
    }
  }
  try {
    const setTenant = `set local grandlivre.schema_id = ${textLiteral(idLiteral(schemaId))}`
    await first.query(`begin isolation level repeatable read read only; ${setTenant}`)
    const { rows } = await first.query<{ snapshot: string; at: string }>(
      'select pg_export_snapshot() as snapshot, floor(extract(epoch from now()) * 1000)::bigint as at',
    )
    const sameSnapshot = `set transaction snapshot ${textLiteral(rows[0]!.snapshot)}`
    await second.query(`begin isolation level repeatable read read only; ${sameSnapshot}; ${setTenant}`)
    return { first, second, at: Number(rows[0]!.at), close }
  } catch (error) {
    await close(error as Error)
    throw error
  }
}
