/** JSON built by the database: one COPY whose rows are the movements, forwarded unchanged. */
import type pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import type { YearOfFolder } from '../dataset.ts'
import { listenAsPeer } from './peer.ts'
import { copyJson } from './year.sql.ts'

listenAsPeer((year, pool) => ReadableStream.from(render(year, pool)))

async function* render(year: YearOfFolder, pool: pg.Pool): AsyncGenerator<Uint8Array> {
  const client = await pool.connect()
  yield Buffer.from('[')
  let isFirst = true
  for await (const chunk of client.query(copyTo(copyJson(year))) as AsyncIterable<Buffer>) {
    // Every row starts with a comma, which the first row must drop.
    yield isFirst ? chunk.subarray(1) : chunk
    isFirst = false
  }
  client.release()
  yield Buffer.from(']')
}
