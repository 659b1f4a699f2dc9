/**
 * The entry point of the process that turns CSV into Parquet (exports/render/flat/to-parquet.ts). It reports the result
 * to the process that started it.
 */
import { copyToParquet, duckDbSettings } from './exports/render/flat/parquet.sql.ts'

try {
  // Imported inside the `try`, so that a missing module is reported, too.
  const { DuckDBInstance } = await import('@duckdb/node-api')
  const instance = await DuckDBInstance.create(':memory:', duckDbSettings)
  const connection = await instance.connect()
  const { rowsChanged } = await connection.run(copyToParquet)
  process.send?.({ rows: rowsChanged })
} catch (error) {
  // Only the first line of the error: further lines quote the row.
  process.send?.({ error: String(error).split('\n', 1)[0] })
}
process.disconnect?.()
