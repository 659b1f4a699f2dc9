/**
 * The entry point of the process that turns CSV into Parquet (exports/render/flat/to-parquet.ts). It tells the process
 * that started it how it ended, and ends with it.
 */
import { copyToParquet, duckDbSettings } from './exports/render/flat/parquet.sql.ts'

const endAtOnce = () => process.kill(process.pid, 'SIGKILL')
process.on('disconnect', endAtOnce)
try {
  // Here, so that its absence is told too.
  const { DuckDBInstance } = await import('@duckdb/node-api')
  const instance = await DuckDBInstance.create(':memory:', duckDbSettings)
  const connection = await instance.connect()
  const { rowsChanged } = await connection.run(copyToParquet)
  process.send?.({ rows: rowsChanged })
} catch (error) {
  // Further lines quote the row.
  process.send?.({ error: String(error).split('\n', 1)[0] })
}
process.off('disconnect', endAtOnce)
process.disconnect?.()
