/** JSON made by the database: one COPY whose rows are the movements, passed through. */
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
    // Every row begins with a comma; the first row has none before it.
    yield isFirst ? chunk.subarray(1) : chunk
    isFirst = false
  }
  client.release()
  yield Buffer.from(']')
}
