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

/**
 * In two round trips: the second connection has to wait for the name of the first one's state.
 * @throws {AppError} ERR-UNAVAILABLE where a connection is not to be had in time
 */
export async function openSnapshot(pool: pg.Pool, schemaId: string): Promise<Snapshot> {
  const clients = await connectTwo(pool)
  const [first, second] = clients as [pg.PoolClient, pg.PoolClient]
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
    const begun = await first.query(
      `begin isolation level repeatable read read only; ${setTenant};
       select pg_export_snapshot() as snapshot, floor(extract(epoch from now()) * 1000)::bigint as at`,
    )
    // The types of pg know only messages of one statement.
    const { snapshot, at } = (begun as unknown as pg.QueryResult<{ snapshot: string; at: string }>[])[2]!
      .rows[0]!
    const sameSnapshot = `set transaction snapshot ${textLiteral(snapshot)}`
    await second.query(`begin isolation level repeatable read read only; ${sameSnapshot}; ${setTenant}`)
    return { first, second, at: Number(at), close }
  } catch (error) {
    await close(error as Error)
    throw error
  }
}

/** A connection that dies outside a query tells only its listeners; the next query reports it to the export. */
const ignore = () => {}

async function connectTwo(pool: pg.Pool): Promise<pg.PoolClient[]> {
  const connecting = [connect(pool), connect(pool)].map(async (connected) => {
    const client = await connected
    // From the start: an `error` without a listener, while the other one is opened, would end the process.
    return client.on('error', ignore)
  })
  try {
    return await Promise.all(connecting)
  } catch (error) {
    for (const one of await Promise.allSettled(connecting)) {
      if (one.status === 'rejected') continue
      one.value.off('error', ignore)
      one.value.release()
    }
    throw error
  }
}
