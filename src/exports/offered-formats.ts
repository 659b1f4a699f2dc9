import { createRequire } from 'node:module'
import { type FileFormat, fileFormatNames } from '../formats/file-formats.ts'

/**
 * Whether the optional package that writes Parquet is here, with its binary for this platform. Only checks that it
 * is installed; the process that writes Parquet loads it (exports/render/flat/to-parquet.ts).
 */
function hasDuckDb(): boolean {
  try {
    const api = createRequire(import.meta.url).resolve('@duckdb/node-api')
    const bindings = createRequire(createRequire(api).resolve('@duckdb/node-bindings'))
    const binary = `@duckdb/node-bindings-${process.platform}-${process.arch}`
    return ['', '-musl'].some((libc) => canResolve(bindings, `${binary}${libc}/duckdb.node`))
  } catch {
    return false
  }
}

function canResolve(from: NodeJS.Require, path: string): boolean {
  try {
    from.resolve(path)
    return true
  } catch {
    return false
  }
}

/** The formats that this process can write files in. */
export const offeredFormats: readonly FileFormat[] = fileFormatNames.filter(
  (name) => name !== 'PARQUET' || hasDuckDb(),
)
