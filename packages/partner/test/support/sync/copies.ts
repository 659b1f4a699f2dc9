/** Where tests keep copies, and what they compare them with. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { expect } from 'vitest'
import { createTestDatabase } from '../../../../../test/support/servers/database.ts'
import type { Copy } from '../../../src/sync/sync.ts'
import { type CopyKind, linesIn, tableNames } from './rows.ts'

export const changesPath = '/api/v1/mad/ledgers/changes'

/** A folder for files and a database with schemas, both empty. */
export async function setCopyPlaces() {
  const database = await createTestDatabase({ template: 'template1' })
  const out = await mkdtemp(join(tmpdir(), 'grandlivre-copies-'))
  let copies = 0
  return {
    database,
    out,
    /** The address of a copy that is not there yet, as `--to` takes it. */
    newAddress(kind: CopyKind): string {
      copies += 1
      if (kind === 'SQLite') return join(out, `copy-${copies}.sqlite`)
      const url = new URL(database.ownerUrl)
      url.searchParams.set('schema', `copy_${copies}`)
      return url.href
    },
    async close(): Promise<void> {
      await database.drop()
      await rm(out, { recursive: true })
    },
  }
}

/** The rows of each table of a ledger as the service gives them, read without the library. */
async function tablesOf(
  url: string,
  caller: Record<string, string>,
  society: string,
): Promise<Record<string, string>> {
  const answer = await fetch(`${url}${changesPath}?version=1.0.0`, {
    method: 'POST',
    headers: { ...caller, 'Content-Type': 'application/json' },
    body: JSON.stringify({ ledgers: [{ society }] }),
  })
  const tables: Record<string, string> = {}
  let table = ''
  for (const line of (await answer.text()).split('\n')) {
    if (line.startsWith('{"table"')) {
      table = JSON.parse(line).table
      tables[table] = ''
    } else if (line !== '' && !line.startsWith('{')) tables[table] += `${line}\n`
  }
  return tables
}

/** Expects that the copy has the rows that the service gives to this caller. */
export async function expectRows(
  copy: Copy,
  { url, caller }: { url: string; caller: Record<string, string> },
  societies: readonly string[],
): Promise<void> {
  for (const society of societies) {
    const truth = await tablesOf(url, caller, society)
    expect(Object.keys(truth).sort()).toEqual([...tableNames].sort())
    for (const table of tableNames) {
      const isEqual = String(await linesIn(copy, society, table)) === truth[table]
      // Both texts are too long for a message.
      expect([society, table, isEqual]).toEqual([society, table, true])
    }
  }
}

/** Runs a statement as another program does. @param address of the copy, as `--to` takes it */
export async function tamper(address: string, sql: string): Promise<void> {
  if (!address.startsWith('postgres')) {
    const database = new DatabaseSync(address)
    database.exec(sql)
    return database.close()
  }
  const url = new URL(address)
  const schema = url.searchParams.get('schema')
  url.searchParams.delete('schema')
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  await client.query(`set search_path to ${schema}; ${sql}`)
  await client.end()
}
