/**
 * The entry point of the process that turns CSV into Parquet (exports/render/flat/to-parquet.ts), and tells the process
 * that started it how that ended.
 */
import { copyToParquet, duckDbSettings } from './exports/render/flat/parquet.sql.ts'

try {
  // Here, so that its absence is reported, too.
  const { DuckDBInstance } = await import('@duckdb/node-api')
  const instance = await DuckDBInstance.create(':memory:', duckDbSettings)
  const connection = await instance.connect()
  const { rowsChanged } = await connection.run(copyToParquet)
  process.send?.({ rows: rowsChanged })
} catch (error) {
  // Further lines quote the row.
  process.send?.({ error: String(error).split('\n', 1)[0] })
}
process.disconnect?.()
