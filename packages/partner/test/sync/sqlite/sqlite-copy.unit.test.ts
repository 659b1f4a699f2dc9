/** SQLite gives back the lines that came, and other lines after somebody has changed its rows. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, test } from 'vitest'
import { type LedgerTableName, ledgerTables } from '../../../../contract/src/ledger-tables.ts'
import type { Copy } from '../../../src/sync/copy.ts'
import { openSqlite } from '../../../src/sync/sqlite/sqlite-copy.sql.ts'
import { lineOf, linesIn, tableNames } from '../../support/sync/rows.ts'

const out = mkdtempSync(join(tmpdir(), 'grandlivre-copy-'))
afterAll(() => rmSync(out, { recursive: true }))

let files = 0
function newFile(): string {
  files += 1
  return join(out, `copy-${files}.sqlite`)
}

const fields = {
  bigint: ['1', '9007199254740991', '\\N', '-3'],
  date: ['2026-01-31', '\\N', '0044-03-15 BC'],
  timestamptz: ['2026-01-31 10:00:00+00', '\\N', '2026-01-31 23:59:59.123456+00'],
  boolean: ['t', 'f', '\\N'],
  'numeric(18,2)': ['0.00', '-0.05', '1234.50', '9999999999999999.99', '-9999999999999999.99', '\\N'],
  'numeric(18,6)': ['0.000000', '1.100000', '-0.000001', '999999999999.999999', '\\N'],
  text: ['', '\\N', '\\\\N', 'tab \\t, line \\n\\r, \\b\\f\\v and \\\\', "d'Ambre n° 7 🧾", '\u0001'],
  json: ['{"a": "b\\\\nc"}', '\\N'],
}

/** Lines of a table in which every column has each of its fields in turn. */
function linesOf(table: LedgerTableName, rows = 12): string[] {
  return Array.from({ length: rows }, (_, row) => {
    const cells = ledgerTables[table].columns.map(({ name, type }, column) => {
      if (column === 0) return table === 'folders' ? '26002' : String(row + 1)
      if (name === 'movement_id') return String(row + 100)
      return fields[type][(row + column) % fields[type].length]
    })
    return `${cells.join('\t')}\n`
  })
}

async function fill(copy: Copy, society: string, lines: Partial<Record<LedgerTableName, string[]>>) {
  await copy.begin(society)
  for (const [table, rows] of Object.entries(lines)) {
    await copy.table(table as LedgerTableName)
    await copy.rows(new TextEncoder().encode(rows.join('')))
  }
  await copy.commit({ firm_id: '26001', cursor: 'c1' }, null)
}

const read = async (copy: Copy, society: string, table: LedgerTableName) =>
  (await linesIn(copy, society, table)).toString('latin1')

const bytesOf = (lines: string[]) => Buffer.from(lines.join('')).toString('latin1')

test('a copy knows its service even if another process recorded it after the copy was opened', async () => {
  const file = newFile()
  const [earlier, other] = [await openSqlite(file), await openSqlite(file)]
  await other.adopt('https://ledger.example')
  expect(earlier.service).toBe('https://ledger.example')
})

test('every field of every table is read back byte for byte', async () => {
  const copy = await openSqlite(newFile())
  const lines = Object.fromEntries(
    tableNames.map((table) => [table, linesOf(table, table === 'folders' ? 1 : 12)]),
  )
  await fill(copy, '26002', lines)
  for (const table of tableNames) expect(await read(copy, '26002', table), table).toBe(bytesOf(lines[table]!))
  await copy.close()
})

test('chunks end between entries, and an entry larger than a chunk stays whole', async () => {
  const copy = await openSqlite(newFile())
  const [line] = linesOf('movements', 1)
  const lines = Array.from({ length: 5000 }, (_, row) => {
    const cells = line!.split('\t')
    cells[0] = String(row < 2500 ? Math.floor(row / 3) : 5000)
    cells[18] = String(row)
    return cells.join('\t')
  })
  await fill(copy, '26002', { movements: lines })
  expect(await read(copy, '26002', 'movements')).toBe(bytesOf(lines))
  await copy.close()
})

const tampering: Record<string, string> = {
  'a cent': 'update movements set debit_cents = debit_cents + 1 where entry_id = 3',
  'a blank': "update movements set description = description || ' ' where entry_id = 1",
  'an absent text that became the letters of its field':
    "update movements set source = '\\N' where source is null",
  'an absent text that became empty': "update movements set source = '' where source is null",
  'the letters of an escape': "update movements set description = replace(description, '\\', '\\\\')",
  'a tab that joins two fields':
    "update movements set journal_code = journal_code || char(9) || 'x' where entry_id = 2",
  'a zone in a small letter': "update movements set created_at = replace(created_at, 'Z', 'z')",
  'a letter after a NUL in a time': "update movements set created_at = created_at || char(0) || 'x'",
  'a zone that appears twice': "update movements set created_at = created_at || 'Z'",
  'the letters of an escape in JSON': `update movements set analytics = '{"a": "b\\\\nc"}' where analytics is not null`,
  'another zone': "update movements set created_at = replace(created_at, 'Z', '+00')",
  'a boolean that is neither true nor false': 'update movements set draft = 2 where entry_id = 1',
  'a number that became absent': 'update movements set credit_cents = null where entry_id = 2',
  'a letter after a NUL in a text':
    "update movements set description = description || char(0) || 'x' where entry_id = 1",
  'bytes that are no text': "update movements set description = cast(x'ff' as text) where entry_id = 1",
  'a missing row': 'delete from movements where entry_id = 12',
  'a row of another folder': 'update movements set society_id = 7 where entry_id = 1',
}

test.each(Object.entries(tampering))('detects a change by another program: %s', async (_, sql) => {
  const file = newFile()
  const copy = await openSqlite(file)
  const lines = linesOf('movements')
  await fill(copy, '26002', { movements: lines })
  const other = new DatabaseSync(file)
  expect(Number(other.prepare(sql).run().changes)).toBeGreaterThan(0)
  other.close()
  expect(await read(copy, '26002', 'movements')).not.toBe(bytesOf(lines))
  await copy.close()
})

test.each(['description', 'created_at', 'partner_metadata'] as const)(
  'detects a row that was moved into the %s of the row before it',
  async (name) => {
    const file = newFile()
    const copy = await openSqlite(file)
    const texts = { created_at: '2026-01-31 10:00:00+00', description: 'Loyer', partner_metadata: '{}' }
    const lines = ['1', '2'].map((id) => lineOf('movements', { ...texts, entry_id: id, movement_id: '1' }))
    await fill(copy, '26002', { movements: lines })
    const place = ledgerTables.movements.columns.findIndex((column) => column.name === name)
    const [before, after] = lines.map((line) => line.replace('\n', '').split('\t'))
    const text = `${before!.slice(place).join('\t')}\n${after!.slice(0, place + 1).join('\t')}`
    const other = new DatabaseSync(file)
    other
      .prepare(`update movements set ${name} = ? where entry_id = 1`)
      .run(name === 'created_at' ? text.replace(/\+00$/, 'Z') : text)
    other.exec('delete from movements where entry_id = 2')
    other.close()
    expect(await read(copy, '26002', 'movements')).not.toBe(bytesOf(lines))
    await copy.close()
  },
)

test('rows of an unlisted folder are found and removed', async () => {
  const file = newFile()
  const copy = await openSqlite(file)
  await fill(copy, '26002', { movements: linesOf('movements'), accounts: linesOf('accounts') })
  const other = new DatabaseSync(file)
  other.exec(
    'update movements set society_id = 7 where entry_id = 1; update accounts set society_id = 9 where account_id = 2',
  )
  other.close()
  expect((await copy.strays()).sort()).toEqual(['7', '9'])
  await copy.remove('7')
  expect(await copy.strays()).toEqual(['9'])
  await copy.close()
})

test('a rollback leaves no rows, and a diary is kept beside the proven columns', async () => {
  const copy = await openSqlite(newFile())
  await fill(copy, '26002', { folders: linesOf('folders', 1) })
  await copy.note(['26002', '26003'], { firm_id: '26001', firm_name: 'One', gone_at: '2026-01-01T00:00:00Z' })
  await copy.begin('26003')
  await copy.table('movements')
  await copy.rows(Buffer.from(linesOf('movements').join('')))
  await copy.rollback()
  expect(await read(copy, '26003', 'movements')).toBe('')
  expect(await read(copy, '26002', 'folders')).toBe(bytesOf(linesOf('folders', 1)))
  expect(await copy.folders()).toMatchObject([
    { society: '26002', firm_name: 'One', cursor: 'c1', gone_at: '2026-01-01T00:00:00Z' },
    { society: '26003', firm_id: '26001', cursor: null },
  ])
  await copy.close()
})

test('only one process may write the folders of a firm, and several firms of one service can share a file', async () => {
  const file = newFile()
  const link = newFile()
  symlinkSync(file, link)
  const [one, other] = [await openSqlite(file), await openSqlite(link)]
  await one.adopt('https://ledger.example')
  await other.adopt('https://ledger.example')
  await expect(other.adopt('https://other.example')).rejects.toMatchObject({ code: 'COPY-REFUSED' })
  await one.lock(['26001'])
  await other.lock(['27001'])
  await expect(other.lock(['26001'])).rejects.toMatchObject({ code: 'COPY-LOCKED' })
  await one.close()
  await other.lock(['26001'])
  await other.close()
})

test('a copy of another layout and an unrelated file are refused, and the error names the command that helps', async () => {
  const former = newFile()
  const database = new DatabaseSync(former)
  database.exec(
    'pragma application_id = 0x474c5652; create table sync_state (area text); create view movements as select 1; create table mine as select 1 as one',
  )
  database.close()
  await expect(openSqlite(former)).rejects.toMatchObject({
    code: 'COPY-REFUSED',
    remedy: `Rebuild it: grandlivre sync --again --to ${former}`,
  })
  await (await openSqlite(former, { again: true })).close()
  await (await openSqlite(former)).close()
  const kept = new DatabaseSync(former)
  expect(kept.prepare('select one from mine').get()).toEqual({ one: 1 })
  kept.close()
  const notes = newFile()
  writeFileSync(notes, 'These are notes, and no database at all. '.repeat(50))
  await expect(openSqlite(notes, { again: true })).rejects.toThrow('is no SQLite database')
  await expect(openSqlite(out)).rejects.toThrow(`${out} cannot be opened: unable to open database file`)
  expect(readFileSync(notes, 'utf8')).toMatch(/^These are notes/)
  await expect(openSqlite(newFile(), { isThere: true })).rejects.toThrow('There is no copy in')
})
