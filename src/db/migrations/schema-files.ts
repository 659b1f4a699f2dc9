/** Reads and checks the SQL of this folder: numbered migrations, and functions/ with the current definitions. */
import { strict as assert } from 'node:assert'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

/** How the name of an expanding migration ends (see migrate.ts). */
const expanding = '.expand.sql'

const shippedFolder = fileURLToPath(new URL('./', import.meta.url))

interface SqlFile {
  /** `0002_ledger.sql`, `0010_audit.expand.sql`, `functions/access.sql` */
  name: string
  sql: string
}

export interface SchemaFiles {
  /** The number of the last migration. */
  version: number
  /** The file at index 0 is version 1. */
  migrations: SqlFile[]
  functions: SqlFile[]
}

/**
 * @param folder with a slash at its end
 * @throws {AssertionError} where numbers are not 1, 2, 3 and so on (a gap is a lost file), or functions/ differs from
 *   the hash in the last line `-- functions:` of the migrations: the change would not reach existing databases
 */
export async function readSchemaFiles(folder: string = shippedFolder): Promise<SchemaFiles> {
  const migrations = await readSqlFiles(folder)
  assert(migrations.length > 0, `no migrations in ${folder}`)
  for (const [index, { name }] of migrations.entries())
    assert(
      Number(/^(\d{4})_[a-z0-9_]+(\.expand)?\.sql$/.exec(name)?.[1]) === index + 1,
      `${name} does not carry the next number`,
    )
  const functions = existsSync(`${folder}functions`) ? await readSqlFiles(folder, 'functions/') : []
  checkFunctions(migrations, functions)
  return { version: migrations.length, migrations, functions }
}

/** An applied migration, as grandlivre.migrations records it. */
export interface AppliedMigration {
  version: number
  name: string
}

/** The oldest version of the code that can use a database with these migrations: the last one that is not expanding. */
export function oldestCodeFor(applied: readonly AppliedMigration[]): number {
  return Math.max(0, ...applied.filter(({ name }) => !name.endsWith(expanding)).map(({ version }) => version))
}

async function readSqlFiles(folder: string, prefix = ''): Promise<SqlFile[]> {
  const names = (await readdir(folder + prefix)).filter((name) => name.endsWith('.sql')).sort()
  return Promise.all(
    names.map(async (name) => ({
      name: prefix + name,
      sql: await readFile(folder + prefix + name, 'utf8'),
    })),
  )
}

function checkFunctions(migrations: SqlFile[], functions: SqlFile[]): void {
  const hash = createHash('sha256')
  for (const { name, sql } of functions) hash.update(`${name}\n${sql}`)
  const line = `-- functions: sha256 ${hash.digest('hex')}`
  const last = migrations.findLast(({ sql }) => sql.includes('-- functions: sha256 '))
  if (functions.length === 0 && last === undefined) return
  assert(
    last?.sql.includes(line),
    `functions/ differs from the hash in ${last?.name ?? 'the migrations'}. Add a migration with the line ` +
      `"${line}", or put it into the last one if that is not released.`,
  )
}
