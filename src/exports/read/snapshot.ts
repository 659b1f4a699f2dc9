/**
 * One state of the database, shared by two connections: everything that an export reads is consistent, whatever is
 * committed meanwhile. Both connections see one tenant and are read-only.
 */
import type pg from 'pg'
import { textLiteral } from '../../db/literal.ts'
import { connect, setTenant } from '../../db/pool.ts'

export interface Snapshot {
  first: pg.PoolClient
  second: pg.PoolClient
  /** The time of the snapshot: epoch milliseconds by the clock of the database. */
  at: number
  /**
   * Releases the connections. With an error it closes them instead: a connection that is still sending rows cannot be
   * reused, and closing it ends the query in the database. Only the first call counts.
   */
  close(error?: Error): Promise<void>
}

/**
 * Takes two round trips: the second connection needs the snapshot id of the first.
 * @throws {AppError} ERR-UNAVAILABLE if no connection becomes available in time
 */
export async function openSnapshot(pool: pg.Pool, schemaId: string): Promise<Snapshot> {
  const clients = await connectTwo(pool)
  const [first, second] = clients as [pg.PoolClient, pg.PoolClient]
  let closed = false
  const close = async (error?: Error): Promise<void> => {
    if (closed) return
    closed = true
    let broken = error
    try {
      if (!error) await Promise.all(clients.map((client) => client.query('commit')))
    } catch (failure) {
      broken = failure as Error
      throw failure
    } finally {
      for (const client of clients) client.release(broken)
    }
  }
  try {
    const begun = await first.query(
      `begin isolation level repeatable read read only; ${setTenant(schemaId)};
       select pg_export_snapshot() as snapshot, floor(extract(epoch from now()) * 1000)::bigint as at`,
    )
    // The types of pg do not cover queries of several statements.
    const { snapshot, at } = (begun as unknown as pg.QueryResult<{ snapshot: string; at: string }>[])[2]!
      .rows[0]!
    const sameSnapshot = `set transaction snapshot ${textLiteral(snapshot)}`
    await second.query(
      `begin isolation level repeatable read read only; ${sameSnapshot}; ${setTenant(schemaId)}`,
    )
    return { first, second, at: Number(at), close }
  } catch (error) {
    await close(error as Error)
    throw error
  }
}

async function connectTwo(pool: pg.Pool): Promise<pg.PoolClient[]> {
  const connecting = [connect(pool), connect(pool)]
  try {
    return await Promise.all(connecting)
  } catch (error) {
    for (const one of await Promise.allSettled(connecting))
      if (one.status === 'fulfilled') one.value.release()
    throw error
  }
}
