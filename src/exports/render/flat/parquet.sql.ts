/**
 * The statement that turns our CSV on standard input into Parquet on standard output, for DuckDB. Columns are read as
 * declared, never guessed; an unquoted empty field is null, a quoted one an empty text.
 */
import { flatColumns, sharesType } from '../../../formats/flat/columns.ts'
import { parquetRowBytesMax } from '../../../formats/flat/parquet-limits.ts'

/** One thread keeps the order of rows and the memory low; nothing is written to disk, nothing is downloaded. */
export const duckDbSettings = {
  threads: '1',
  memory_limit: '150MB',
  temp_directory: '',
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
}

/** Rows of a group, which DuckDB holds in memory. */
const groupRows = 50_000

/** Shares arrive as JSON. */
const csvType = (type: string): string => (type === sharesType ? 'VARCHAR' : type)
const csvColumns = flatColumns.map(({ name, type }) => `'${name}': '${csvType(type)}'`).join(', ')

const sharesForm = `[{"axis_code": "VARCHAR", "section_code": "VARCHAR", "amount": "DECIMAL(18,2)", "rate": "DECIMAL(18,4)"}]`
const selected = flatColumns.map(({ name, type }) =>
  type === sharesType ? `from_json(${name}, '${sharesForm}') as ${name}` : name,
)

export const copyToParquet = `copy (
    select ${selected.join(', ')}
    from read_csv('/dev/stdin', auto_detect = false, header = true, delim = ',', quote = '"', escape = '"',
      new_line = '\\r\\n', nullstr = '', allow_quoted_nulls = false, columns = {${csvColumns}},
      max_line_size = ${parquetRowBytesMax}, buffer_size = ${parquetRowBytesMax})
  ) to '/dev/stdout' (format parquet, compression zstd, row_group_size ${groupRows})`
