import type pg from 'pg'
import QueryStream from 'pg-query-stream'

/**
 * Reads the rows of a query with a cursor, batch by batch, so memory does not grow with the result. The connection
 * accepts no other query until all rows are read. A reader may leave early; its connection must then be discarded.
 * @param batchRows rows of each batch; the last may have fewer
 */
export async function* readByCursor<Row>(
  client: pg.ClientBase,
  text: string,
  values: unknown[],
  batchRows = 100,
): AsyncGenerator<Row[]> {
  const stream = client.query(new QueryStream(text, values, { batchSize: batchRows }))
  // Without an error, destroying the stream waits for the response to closing the cursor. After an error of the
  // cursor or its connection, or when the reader gives up, that response may never come.
  const closeCursor = stream._destroy.bind(stream)
  stream._destroy = (error, done) => (error ? done(error) : closeCursor(error, done))
  // If a connection ends between two batches, only the client emits an event.
  const fail = (error?: Error) => stream.destroy(error ?? new Error('Connection terminated unexpectedly'))
  client.once('error', fail)
  client.once('end', fail)
  try {
    let batch: Row[] = []
    for await (const row of stream) {
      batch.push(row)
      if (batch.length < batchRows) continue
      yield batch
      batch = []
    }
    if (batch.length > 0) yield batch
  } finally {
    client.off('error', fail)
    client.off('end', fail)
  }
}
