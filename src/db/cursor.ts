import type pg from 'pg'
import QueryStream from 'pg-query-stream'

/**
 * The rows of a query by a cursor, batch by batch: memory does not grow with the result. The connection takes no other
 * query until the rows are read. A reader that leaves before is not held up, but its connection has to be discarded.
 * @param batchRows rows of a batch, but for the last
 */
export async function* readByCursor<Row>(
  client: pg.ClientBase,
  text: string,
  values: unknown[],
  batchRows = 100,
): AsyncGenerator<Row[]> {
  const stream = client.query(new QueryStream(text, values, { batchSize: batchRows }))
  // An error is the end of the cursor, or of its connection, or of the reader's patience: destroyed with one, the stream
  // would wait for an answer to the closing of a cursor that nobody may answer for.
  const closeCursor = stream._destroy.bind(stream)
  stream._destroy = (error, done) => (error ? done(error) : closeCursor(error, done))
  // Of a connection that ends between two batches only the client is told.
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
