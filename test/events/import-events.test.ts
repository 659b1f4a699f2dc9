/** The events that imports, seeds and full exports publish. */
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { seed } from '../../packages/sample/src/seed.ts'
import { checkEventPayload } from '../../src/events/kinds.ts'
import { cli } from '../support/cli.ts'
import { readFixture } from '../support/fixtures/fixture-files.ts'
import { forEachTest } from '../support/for-tests.ts'
import { ended, trigger } from '../support/full-export.ts'
import { setImportStage } from '../support/imports/import-stage.ts'
import { type FecRow, ledger } from '../support/ledgers/fec-file.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { setExportStage } from '../support/stages/export-stage.ts'

interface PublishedEvent {
  name: string
  operation: string
  // biome-ignore lint/suspicious/noExplicitAny: data and scope of any kind
  data: any
  // biome-ignore lint/suspicious/noExplicitAny: as above
  scope: any
  folder_id: string | null
}

interface Queries {
  // biome-ignore lint/suspicious/noExplicitAny: rows of any shape
  query(text: string, values?: unknown[]): Promise<{ rows: any[] }>
}

/** All events in order, each checked against the registry. */
async function allEvents(client: Queries): Promise<PublishedEvent[]> {
  const { rows } = await client.query(
    'select name, operation, data, scope, folder_id from grandlivre.events order by id',
  )
  for (const row of rows) checkEventPayload(row)
  return rows
}

/** Kinds and operations in order. Equal ones in a row are one text, with their number. */
function runsOf(published: PublishedEvent[]): string[] {
  const runs: [string, number][] = []
  for (const { name, operation } of published) {
    const what = `${name} ${operation}`
    const last = runs.at(-1)
    if (last?.[0] === what) last[1] += 1
    else runs.push([what, 1])
  }
  return runs.map(([what, times]) => `${what} ${times}`)
}

const dataOf = (published: PublishedEvent[], name: string, operation = 'CREATE') =>
  published.filter((event) => event.name === name && event.operation === operation).map(({ data }) => data)

describe('an import of a FEC', () => {
  const stage = forEachTest(setImportStage)

  /** The letterings in the tables, as their events should show them. */
  async function letteringsIn(): Promise<unknown[]> {
    const { rows } = await stage.owner.query(
      `select distinct on (account_id, lettering_code) id, invoice_number as piece from grandlivre.movements
       where lettering_code is not null order by account_id, lettering_code, id`,
    )
    const letterings = rows.map(({ id, piece }) => ({
      id,
      paymentType: '',
      ...(piece && { piece1: piece }),
    }))
    return letterings.sort((a, b) => Number(a.id) - Number(b.id))
  }

  test('publishes first the folder, then its exercice, each entry and each lettering', async () => {
    const imported = await stage.importRows(ledger)
    const published = await allEvents(stage.owner)
    expect(runsOf(published)).toEqual([
      'accountingFolder CREATE 1',
      'exercice CREATE 1',
      'accountingLineEntry CREATE 11',
      'accountingEntryLettering CREATE 3',
      'ledger UPDATE 1',
    ])
    expect(dataOf(published, 'accountingFolder')).toEqual([{ id: imported.folderId }])
    expect(dataOf(published, 'exercice')).toEqual([{ id: imported.exerciceId }])
    const { rows } = await stage.owner.query('select id from grandlivre.entries order by id')
    expect(dataOf(published, 'accountingLineEntry')).toEqual(rows)
    expect(dataOf(published, 'accountingEntryLettering')).toEqual(await letteringsIn())
    expect(new Set(published.map(({ folder_id }) => folder_id))).toEqual(new Set([imported.folderId]))
    for (const { scope } of published)
      expect(scope).toEqual({
        schemaId: Number(imported.schemaId),
        firmId: Number(imported.firmId),
        accountingFolderId: Number(imported.folderId),
        accountingFolderRef: '123456789',
        accountingFolderSIRET: '123456789',
      })
  })

  test('into an existing folder publishes no event about the folder, and one about the exercice only if it is new', async () => {
    await stage.importRows(ledger)
    await stage.owner.query('truncate grandlivre.events')
    const nextYear = ledger.map((row) => later(row))
    await stage.importRows(nextYear, { file: '123456789FEC20241231.txt' })
    expect(runsOf(await allEvents(stage.owner))[0]).toBe('exercice CREATE 1')
    await stage.owner.query('delete from grandlivre.movements; delete from grandlivre.entries')
    await stage.owner.query('truncate grandlivre.events')
    await stage.importRows(nextYear, { file: '123456789FEC20241231.txt' })
    expect(runsOf(await allEvents(stage.owner))[0]).toBe('accountingLineEntry CREATE 11')
  })

  test('that replaces a ledger publishes the letterings that it removed, then those that it added', async () => {
    await stage.importRows(ledger)
    const before = await letteringsIn()
    await stage.owner.query('truncate grandlivre.events')
    await stage.importRows(ledger, { replace: true })
    expect(await allEvents(stage.owner)).toEqual([])
    // Lettering A is removed, B gets another line, and C stays. The two bank entries have no number, so they count as new.
    const lettered = ledger.map((row) => ({
      ...row,
      EcritureLet:
        row['EcritureLet'] === 'A' ? '' : row['EcritureLib'] === 'Règlement' ? 'B' : row['EcritureLet']!,
    }))
    await stage.importRows(lettered, { replace: true })
    const published = await allEvents(stage.owner)
    expect(runsOf(published)).toEqual([
      'accountingEntryLettering DELETE 2',
      'accountingLineEntry CREATE 2',
      'accountingEntryLettering CREATE 2',
      'ledger UPDATE 1',
    ])
    const after = await letteringsIn()
    const without = (some: unknown[], others: unknown[]) =>
      some.filter((one) => !others.some((other) => JSON.stringify(other) === JSON.stringify(one)))
    const removed = dataOf(published, 'accountingEntryLettering', 'DELETE')
    const added = dataOf(published, 'accountingEntryLettering')
    expect(without(before, removed)).toEqual(without(after, added))
    expect(without(before, removed)).toHaveLength(1)
    const { rows } = await stage.owner.query('select id from grandlivre.entries order by id desc limit 2')
    expect(dataOf(published, 'accountingLineEntry')).toEqual(rows.toReversed())
  })

  test('that is refused publishes no event', async () => {
    await stage.importRows(ledger)
    await stage.owner.query('truncate grandlivre.events')
    await expect(stage.importRows(ledger)).rejects.toThrow('--replace')
    await expect(
      stage.importRows([...ledger, { ...ledger[0]!, Debit: '1,00' }], { replace: true }),
    ).rejects.toThrow()
    expect(await allEvents(stage.owner)).toEqual([])
  })
})

function later(row: FecRow): FecRow {
  const nextYear = (day = '') => day.replace(/^2023/, '2024').replace(/^2022/, '2023')
  return {
    ...row,
    EcritureDate: nextYear(row['EcritureDate']),
    PieceDate: nextYear(row['PieceDate']),
    DateLet: nextYear(row['DateLet']),
    ValidDate: nextYear(row['ValidDate']),
  }
}

test.each(['mad', 'tra'] as const)(
  'loading a full export back publishes one ledger event, and one more if it replaces the ledger (%s)',
  async (format) => {
    const stage = await setImportStage()
    const bytes = readFixture(format === 'mad' ? 'ledger.mad.json' : 'ledger.tra')
    const imported = format === 'mad' ? stage.importMad : stage.importTra
    const { folderId } = await imported(bytes)
    expect(runsOf(await allEvents(stage.owner)).filter((run) => run.startsWith('ledger'))).toEqual([
      'ledger UPDATE 1',
    ])
    await stage.owner.query('update grandlivre.exercices set closed_at = null')
    await stage.owner.query('truncate grandlivre.events')
    await imported(bytes, { folderId, replace: true })
    const replaced = await allEvents(stage.owner)
    expect(runsOf(replaced).filter((run) => run.startsWith('ledger'))).toEqual(['ledger UPDATE 1'])
    expect(runsOf(replaced).at(-1)).toBe('ledger UPDATE 1')
    await stage.close()
  },
)

test('a seed publishes the same events as an import: payment modes as partners see them, and what it replaced', async () => {
  const database = await createTestDatabase()
  const client = new pg.Client({ connectionString: database.ownerUrl })
  await client.connect()
  const first = await seed(database.ownerUrl, { movements: 2_000, year: 2025 })
  const published = await allEvents(client)
  expect(runsOf(published).slice(0, 3)).toEqual([
    'accountingFolder CREATE 1',
    'exercice CREATE 2',
    expect.stringMatching(/^accountingLineEntry CREATE \d+$/),
  ])
  expect(dataOf(published, 'accountingLineEntry')).toHaveLength(first.counts.entries)
  expect(dataOf(published, 'ledger', 'UPDATE')).toHaveLength(1)
  expect(dataOf(published, 'exercice')).toEqual(first.exercices.map(({ id }) => ({ id })))
  const set = dataOf(published, 'accountingEntryLettering')
  const modes = new Set(set.map(({ paymentType }) => paymentType))
  expect(modes).toContain('VIR')
  for (const mode of modes) expect(['', 'CB', 'VIR', 'ESP', 'CHQ', 'PRE', 'LCR']).toContain(mode)

  await client.query('truncate grandlivre.events')
  const second = await seed(database.ownerUrl, { movements: 100, year: 2025, replace: true })
  const replaced = await allEvents(client)
  const byId = (a: { id: string }, b: { id: string }) => Number(a.id) - Number(b.id)
  expect(dataOf(replaced, 'accountingEntryLettering', 'DELETE')).toEqual(set.sort(byId))
  expect(dataOf(replaced, 'exercice', 'DELETE')).toEqual(first.exercices.map(({ id }) => ({ id })))
  expect(dataOf(replaced, 'exercice')).toEqual(second.exercices.map(({ id }) => ({ id })))
  expect(dataOf(replaced, 'accountingFolder')).toEqual([])
  expect(dataOf(replaced, 'ledger', 'UPDATE')).toHaveLength(1)
  expect(dataOf(replaced, 'accountingLineEntry')).toHaveLength(second.counts.entries)
  await client.end()
  await database.drop()
})

test('a finished full export publishes one event, with its outcome', async () => {
  const { first } = folders
  const folder = join(tmpdir(), `grandlivre-export-events-${process.pid}`)
  const stage = await setExportStage({
    store: { kind: 'filesystem', folder },
    rateLimit: { requests: 1_000_000, windowMs: 10_000, concurrent: 10 },
  })
  const client = stage.staff.client
  await client.query('truncate grandlivre.events')
  const { id } = (await trigger(stage.service.url, stage.company)).body
  expect((await ended(stage.service.url, stage.company, id)).status).toBe('DONE')
  const cancelled = `export_${'c'.repeat(32)}`
  await client.query(
    `insert into grandlivre.exports (schema_id, id, folder_id, version, format, identity, request_id)
     values ($1, $2, $3, '1.0.0', 'JSON', repeat('c', 64), 'request')`,
    [first.schemaId, cancelled, first.folderId],
  )
  expect(
    (await cli(stage.database.ownerUrl, 'export', 'cancel', cancelled, '--reason', 'not now')).code,
  ).toBe(0)
  expect((await cli(stage.database.ownerUrl, 'export', 'cancel', cancelled)).code).toBe(1)
  const published = (await allEvents(client)).filter(({ name }) => name === 'cloudDocument')
  const status = await client.query('select reason from grandlivre.exports where id = $1', [cancelled])
  expect(published.map(({ operation, data, scope }) => [operation, data, scope.accountingFolderId])).toEqual([
    ['CREATE', { id, status: 'completed' }, 111],
    ['CREATE', { id: cancelled, status: 'rejected', reason: status.rows[0].reason }, 111],
  ])
  expect(published[1]!.data.reason).toContain('not now')
  await stage.close()
  await rm(folder, { recursive: true, force: true })
})
