/**
 * The statement that turns our CSV on standard input into Parquet on standard output, for DuckDB. Columns are read as
 * declared, never guessed; an unquoted empty field is null, a quoted one an empty text.
 */
import { flatColumns, parquetRowBytesMax, sharesType } from '../../../formats/flat/columns.ts'

/**
 * With one thread, rows stay in order even if `preserve_insertion_order` is false. Groups can be limited in bytes only
 * if it is false. Nothing is written to disk, nothing is downloaded. Peaks of the whole process: 210 MB for 600,000
 * ordinary rows, 283 MB for 30,000 rows of 4 KB, 289 MB for 3,000 rows of 50 KB.
 */
export const duckDbSettings = {
  threads: '1',
  preserve_insertion_order: 'false',
  memory_limit: '200MB',
  temp_directory: '',
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
}

/**
 * DuckDB holds a group in memory several times over. Without the limit in bytes, groups with rows of 2 KB needed too
 * much memory.
 */
const groupRows = 50_000
const groupBytes = 30_000_000

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
  ) to '/dev/stdout' (format parquet, compression zstd, row_group_size ${groupRows},
    row_group_size_bytes ${groupBytes})`
