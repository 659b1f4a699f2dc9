/** Reads and checks the SQL of the schema: schema.sql, numbered migrations, and functions/ with the current definitions. */
import { strict as assert } from 'node:assert'
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

/** How the name of an expanding migration ends (see migrate.ts). */
const expanding = '.expand.sql'

/** The folder of schema.sql, first-rows.sql and migrations/. */
const shippedFolder = fileURLToPath(new URL('../', import.meta.url))

export interface SqlFile {
  /** `0008_filed_ledgers.sql`, `0010_audit.expand.sql`, `functions/access.sql` */
  name: string
  sql: string
}

/** A migration, as grandlivre.migrations records it. */
export interface AppliedMigration {
  version: number
  name: string
}

export interface SchemaFiles {
  /** The number of the last migration. */
  version: number
  /** The SQL with which a new database begins: schema.sql and first-rows.sql. */
  start: SqlFile[]
  /** The migrations whose result schema.sql contains, as it records them. */
  held: AppliedMigration[]
  /** Ascending by version, without a gap. Every database that this code upgrades already has the earlier migrations. */
  migrations: (AppliedMigration & SqlFile)[]
  functions: SqlFile[]
}

/**
 * @param folder with a slash at its end
 * @throws {AssertionError} if a number does not follow the previous one (a gap is a lost file), or functions/ differs
 *   from the hash in the last line `-- functions:` of the migrations: the change would not reach existing databases
 */
export async function readSchemaFiles(folder: string = shippedFolder): Promise<SchemaFiles> {
  const files = await readSqlFiles(`${folder}migrations/`)
  const migrations = files.map((file) => ({ ...file, version: versionOf(file) }))
  assert(migrations.length > 0, `no migrations in ${folder}`)
  for (const [index, { name, version }] of migrations.entries())
    assert(version === migrations[0]!.version + index, `${name} does not have the next number`)
  const functions = await readSqlFiles(`${folder}migrations/`, 'functions/')
  checkFunctions(migrations, functions)
  const start = await readSql(folder, ['schema.sql', 'first-rows.sql'])
  const records = start[0]!.sql.matchAll(/^ {2}\((\d+), '([\w.]+)'\)/gm)
  const held = [...records].map(([, version, name]) => ({ version: Number(version), name: name! }))
  return { version: migrations.at(-1)!.version, start, held, migrations, functions }
}

function versionOf({ name }: SqlFile): number {
  return Number(/^(\d{4})_[a-z0-9_]+(\.expand)?\.sql$/.exec(name)?.[1])
}

/** The oldest version of the code that can use a database with these migrations: the last one that is not expanding. */
export function oldestCodeFor(applied: readonly AppliedMigration[]): number {
  return Math.max(0, ...applied.filter(({ name }) => !name.endsWith(expanding)).map(({ version }) => version))
}

async function readSqlFiles(folder: string, prefix = ''): Promise<SqlFile[]> {
  const names = (await readdir(folder + prefix)).filter((name) => name.endsWith('.sql')).sort()
  return readSql(
    folder,
    names.map((name) => prefix + name),
  )
}

function readSql(folder: string, names: string[]): Promise<SqlFile[]> {
  return Promise.all(names.map(async (name) => ({ name, sql: await readFile(folder + name, 'utf8') })))
}

function checkFunctions(migrations: SqlFile[], functions: SqlFile[]): void {
  const hash = createHash('sha256')
  for (const { name, sql } of functions) hash.update(`${name}\n${sql}`)
  const line = `-- functions: sha256 ${hash.digest('hex')}`
  const last = migrations.findLast(({ sql }) => sql.includes('-- functions: sha256 '))
  assert(
    last?.sql.includes(line),
    `functions/ differs from the hash in ${last?.name ?? 'the migrations'}. Add a migration with the line ` +
      `"${line}", or put it into the last one if that is not released.`,
  )
}
