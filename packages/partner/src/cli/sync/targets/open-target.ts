/** The target that `--to` names. */

import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Failure, UsageError } from '../../../../../terminal/src/command-errors.ts'
import { NdjsonTarget } from '../ndjson/ndjson-target.ts'
import { PostgresTarget } from '../postgres/postgres-target.sql.ts'
import { SqliteTarget } from '../sqlite/sqlite-target.sql.ts'
import type { Target } from './target.ts'

const kinds = 'Write --to <file>.sqlite, --to <file>.ndjson or --to postgres://user:password@host/database.'

/** Where a copy is to be, or is already. */
export interface TargetPlace {
  /** Undefined: of a database, only opening it tells. */
  path: string | undefined
  /** Makes it if it is not there. @throws {Failure} if it cannot be opened */
  open(): Promise<Target>
}

/**
 * @throws {UsageError} if the name is that of no kind of target
 * @throws {Failure} if its folder does not exist
 */
export function targetPlace(to: string): TargetPlace {
  if (/^postgres(ql)?:\/\//.test(to)) return { path: undefined, open: () => PostgresTarget.open(to) }
  const path = resolve(to)
  const isSqlite = /\.(sqlite3?|db)$/.test(path)
  if (!isSqlite && !path.endsWith('.ndjson'))
    // The address of another database may have a password.
    throw new UsageError(`--to ${to.replace(/\/\/.*@/, '//')} names no kind of target. ${kinds}`)
  const folder = dirname(path)
  if (!existsSync(folder))
    throw new Failure(`The folder ${folder} does not exist`, `Create it: mkdir -p '${folder}'`)
  return { path, open: () => (isSqlite ? SqliteTarget.open(path) : NdjsonTarget.open(path)) }
}
