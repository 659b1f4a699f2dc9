/**
 * The tables of a ledger as lines of COPY: PostgreSQL takes them into tables of the declared types, gives the same
 * bytes back, and their values are those that SQL reads from the ledger.
 */
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import type pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  type LedgerTableName,
  ledgerTables,
  wholeTables,
} from '../../../packages/contract/src/ledger-tables.ts'
import { findEntrySpans, ofFile } from '../../../src/exports/read/movements.sql.ts'
import { openSnapshot } from '../../../src/exports/read/snapshot.ts'
import { readLedgerRows } from '../../../src/exports/render/ledger-rows.ts'
import { renderRanges, renderSegments, Tally } from '../../../src/exports/render/render-rows.ts'
import { wholeFolder } from '../../../src/exports/selection.ts'
import { UnsupportedByFormat } from '../../../src/formats/file-formats.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import type { EntryRange } from '../../../src/ledger/changes/entry-ranges.ts'
import { addHostileTexts } from '../../support/fixtures/hostile-texts.ts'
import { copyLate } from '../../support/fixtures/rendered-file.ts'
import { forTests } from '../../support/for-tests.ts'
import { fillHostileLedger } from '../../support/ledgers/hostile-ledger.ts'
import { addEntry } from '../../support/ledgers/ledger.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { plainBuffer } from '../../support/plain/plain-buffer.ts'
import { flatNames, readPlainFlat } from '../../support/plain/plain-flat.ts'
import { readPlainCollection } from '../../support/plain/plain-mad.ts'
import { setMadStage, today } from '../../support/stages/mad-stage.ts'

const { first, sameFirm, otherFirm, otherTenant } = folders
const timeZone = 'Europe/Paris'
const nasty = `",\r\n\\N\t\u0001\b\f\v\u2028😀\\`
const stage = forTests(setMadStage)

beforeAll(async () => {
  const { client } = stage.staff
  await fillHostileLedger(client, sameFirm)
  // A row of COPY holds no larger amount: see the last test.
  await client.query(
    `update grandlivre.movements set debit = least(debit, $3), credit = least(credit, $3)
     where schema_id = $1 and folder_id = $2 and greatest(debit, credit) > $3`,
    [sameFirm.schemaId, sameFirm.folderId, 10n ** 18n - 1n],
  )
  await addHostileTexts(client, otherFirm)
  const ofFolder = `schema_id = ${otherFirm.schemaId} and folder_id = ${otherFirm.folderId}`
  for (const table of ['accounts', 'journals', 'axes', 'sections'])
    await client.query(`update grandlivre.${table} set name = $1 || id where ${ofFolder}`, [nasty])
  for (const table of ['journals', 'axes', 'sections', 'vat_codes'])
    await client.query(`update grandlivre.${table} set code = $1 || id where ${ofFolder}`, [nasty])
  await client.query(`update grandlivre.companies set name = $1, contacts = $2 where ${ofFolder}`, [
    nasty,
    JSON.stringify([{ lastname: nasty }]),
  ])
  await client.query(`update grandlivre.employees set last_name = $1 where ${ofFolder}`, [nasty])
  await client.query(
    `update grandlivre.entries set third_party_id = (select id from grandlivre.third_parties limit 1),
       partner_metadata = $1 where ${ofFolder} and id >= 200000`,
    [JSON.stringify({ partnerId: nasty, json: { [nasty]: [1.5, nasty, null], ' a ': ' " b ' } })],
  )
  await client.query(
    `update grandlivre.entries set filed = '{"PieceDate":"20240229","CompAuxNum":"","CompAuxLib":"a\\tb"}'
     where ${ofFolder} and id % 3 = 0`,
  )
  await client.query(
    `update grandlivre.movements set filed = '{"PieceDate":""}' where ${ofFolder} and id % 7 = 0`,
  )
})

/** The lines of a table. With a range of entries: the lines of their movements. */
async function linesOf(
  { schemaId, folderId }: FolderKey,
  name: LedgerTableName,
  range?: EntryRange,
): Promise<Buffer[]> {
  const key = { schemaId, folderId }
  const snapshot = await openSnapshot(stage.pool, schemaId)
  try {
    const rows = await readLedgerRows(snapshot.first, { ...key, timeZone, withEmployees: true })
    if (name !== 'movements') return await copyLate(rows.table(name, plainBuffer(4096)))
    const resolved = ofFile(wholeFolder(key, timeZone))
    const format = await rows.movements()
    const rendering = { buffer: plainBuffer(4096), tally: new Tally() }
    if (!range) {
      const spans = await findEntrySpans(snapshot.second, resolved)
      return await copyLate(renderSegments(snapshot, resolved, spans, format, rendering))
    }
    return await copyLate(renderRanges(snapshot, resolved, [range], format, rendering))
  } finally {
    await snapshot.close(new Error('closed by the test'))
  }
}

/** Makes an empty table with the declared types, and loads these lines into it. */
async function load(client: pg.Client, name: LedgerTableName, lines: Buffer): Promise<void> {
  const columns = ledgerTables[name].columns.map((column) => `${column.name} ${column.type}`)
  await client.query(`drop table if exists pg_temp.copy_${name}; create temp table copy_${name} (${columns})`)
  const stream = client.query(copyFrom(`copy copy_${name} from stdin`))
  stream.end(lines)
  await once(stream, 'finish')
}

async function givenBack(client: pg.Client, name: LedgerTableName): Promise<Buffer> {
  const order = name === 'movements' ? 'entry_id, movement_id' : ledgerTables[name].columns[0]!.name
  await client.query(`set timezone to 'UTC'; set datestyle to 'ISO'`)
  const stream = client.query(copyTo(`copy (select * from copy_${name} order by ${order}) to stdout`))
  return Buffer.concat(await Array.fromAsync(stream as AsyncIterable<Buffer>))
}

// One folder has the largest amounts and names, the other has texts of every kind.
const filled = Object.entries({ sameFirm, otherFirm })

describe.each(filled)('of folder %s', (_, folder) => {
  test.each([...wholeTables, 'movements'] as const)(
    '%s: COPY loads the lines, and gives the same bytes back',
    async (name) => {
      const lines = Buffer.concat(await linesOf(folder, name))
      await load(stage.staff.client, name, lines)
      expect((await givenBack(stage.staff.client, name)).toString()).toBe(lines.toString())
      expect(lines.length > 0).toBe(true)
    },
  )

  test('movements equal those that SQL reads, including drafts', async () => {
    const { client } = stage.staff
    await load(client, 'movements', Buffer.concat(await linesOf(folder, 'movements')))
    const printed = ledgerTables.movements.columns.map(({ name, type }) => {
      if (type.startsWith('numeric')) return `trim_scale(${name})::text`
      if (type === 'timestamptz') return `replace((${name} at time zone 'UTC')::text, ' ', 'T') || 'Z'`
      return `${name}::text`
    })
    const { rows } = await client.query({
      text: `select ${printed.join(', ')} from copy_movements m order by m.entry_id, m.movement_id`,
      rowMode: 'array',
    })
    expect(ledgerTables.movements.columns.map(({ name }) => name)).toEqual(flatNames)
    const expected = await readPlainFlat(client, folder)
    expect(rows).toEqual(expected)
    const at = flatNames.indexOf('draft')
    expect(new Set(rows.map((row) => row[at])).size).toBe(2)
  })

  test('other tables have the values that the routes give', async () => {
    const { client } = stage.staff
    const items = async (name: string) =>
      JSON.parse(JSON.stringify(await readPlainCollection(client, folder, name, today)))
    const rowsOf = async (name: LedgerTableName) => {
      await load(client, name, Buffer.concat(await linesOf(folder, name)))
      const columns = ledgerTables[name].columns.map((column) => `${column.name}::text`)
      const { rows } = await client.query(`select ${columns} from copy_${name}`)
      return rows
    }
    // biome-ignore-start lint/suspicious/noExplicitAny: parsed items
    const expected: Record<string, any[]> = {
      folders: (await items('accountingFolder')).map((item: any) => ({
        society_id: folder.folderId,
        name: item.name,
        reference: item.reference,
        siret: item.SIRET,
        capital: item.capital.toFixed(2),
        details: JSON.stringify({ address: item.address, contact: item.contact, RCS: item.RCS }),
      })),
      exercices: (await items('exercices')).map(({ producerId, period, state, ...item }: any) => ({
        exercice_id: producerId,
        start_date: period.start,
        end_date: period.end,
        months: String(period.duration),
        state,
        lettering: item.additionalProducerProperties.lettering,
        closed_at: period.closed?.at ?? null,
        closed_by_id: period.closed?.by.producerId ?? null,
        closed_by_first_name: period.closed?.by.firstName ?? null,
        closed_by_last_name: period.closed?.by.lastName ?? null,
      })),
      journals: (await items('journals')).map((item: any) => ({
        journal_id: item.producerId,
        counterpart_account_id: item.counterpartAccount?.producerId ?? null,
        journal_code: item.customerReferenceCode,
        journal_name: item.name,
        journal_type: item.additionalProducerProperties.type,
        journal_type_name: item.type,
        locked: String(item.additionalProducerProperties.locked),
      })),
      accounts: (await items('accounts')).map(({ company, employee, ...item }: any) => ({
        account_id: item.producerId,
        counterpart_account_id: item.counterpartAccount?.producerId ?? null,
        correspondance_account_id: item.correspondanceAccount?.producerId ?? null,
        account_number: item.number,
        account_name: item.name,
        closed: String(item.closed),
        details: company || employee ? JSON.stringify({ company, employee }) : null,
      })),
      payments: (await items('payments')).map((item: any) => ({
        payment_id: item.producerId,
        payment_name: item.name,
        payment_code: item.code,
        internal_code: item.additionalProducerProperties.code,
      })),
      banks: (await items('banks')).map((item: any) => ({
        bank_id: item.producerId,
        account_id: item.account?.producerId ?? null,
        journal_id: item.journal.producerId,
        rib: item.RIB,
        iban: item.IBAN,
        bic: item.BIC,
        is_default: String(item.additionalProducerProperties.isDefault),
      })),
      axes: (await items('analytics')).map((item: any) => ({
        axis_id: item.producerId,
        default_section_id: item.additionalProducerProperties.defaultSectionId,
        axis_code: item.code,
        axis_name: item.name,
      })),
      sections: (await items('analytics')).flatMap((axis: any) =>
        axis.sections.map((item: any) => ({
          section_id: item.producerId,
          axis_id: axis.producerId,
          section_code: item.code,
          section_name: item.name,
          account_roots: item.account,
          closed: String(item.additionalProducerProperties.closed),
        })),
      ),
      vats: (await items('vats')).map((item: any) => ({
        vat_id: item.producerId,
        deductible_account_id: null,
        collected_account_id: null,
        vat_code: item.customerReferenceCode,
        rate: item.rate.toFixed(6),
        vat_type: null,
        exigibility: null,
        type_code: null,
        exigibility_code: null,
      })),
    }
    // biome-ignore-end lint/suspicious/noExplicitAny: parsed items
    for (const name of wholeTables) {
      const key = ledgerTables[name].columns[0]!.name
      const byId = (rows: Record<string, string>[]) =>
        rows.toSorted((a, b) => Number(a[key]) - Number(b[key]))
      const rows = await rowsOf(name)
      expect(rows, name).toEqual(byId(expected[name]!))
      expect(byId(rows), name).toEqual(rows)
    }
  })
})

test('lines of a range equal the same lines of the whole, in chunks of whole lines', async () => {
  const whole = Buffer.concat(await linesOf(otherFirm, 'movements'))
    .toString()
    .split(/(?<=\n)/)
  const parts = await linesOf(otherFirm, 'movements', ['200000', '200010'])
  for (const part of parts) expect(part.at(-1)).toBe(10)
  const inRange = whole.filter((line) => /^2000(0\d|10)\t/.test(line))
  expect(inRange.length).toBe(22)
  expect(Buffer.concat(parts).toString()).toBe(inRange.join(''))
})

test('many accounts arrive in batches, and movements name them even without the table of accounts', async () => {
  const { client } = stage.staff
  const { schemaId, folderId } = first
  await client.query(
    `insert into grandlivre.accounts (schema_id, folder_id, id, number, name)
     select $1, $2, 500000 + i, '601' || i, 'Account ' || i from generate_series(1, 1500) i`,
    [schemaId, folderId],
  )
  const lines = Buffer.concat(await linesOf(first, 'accounts'))
    .toString()
    .trim()
    .split('\n')
  const ids = lines.map((line) => Number(line.split('\t')[0]))
  const { rows } = await client.query(
    'select id::float8 from grandlivre.accounts where schema_id = $1 and folder_id = $2 order by id',
    [schemaId, folderId],
  )
  expect(ids).toEqual(rows.map(({ id }) => id))
})

test('the accounts that were read for their table are used for the movements too', async () => {
  const { schemaId, folderId } = otherTenant
  const alone = Buffer.concat(await linesOf(otherTenant, 'movements'))
  const snapshot = await openSnapshot(stage.pool, schemaId)
  const rows = await readLedgerRows(snapshot.first, { schemaId, folderId, timeZone, withEmployees: true })
  await copyLate(rows.table('accounts', plainBuffer()))
  // Another request to the database fails.
  await snapshot.first.query('savepoint asked')
  const resolved = ofFile(wholeFolder({ schemaId, folderId }, timeZone))
  const format = await rows.movements()
  const spans = await findEntrySpans(snapshot.second, resolved)
  const chunks = renderSegments(snapshot, resolved, spans, format, {
    buffer: plainBuffer(),
    tally: new Tally(),
  })
  expect(Buffer.concat(await copyLate(chunks)).equals(alone)).toBe(true)
  await snapshot.close()
})

test('a folder that does not exist or belongs to another tenant is refused', async () => {
  for (const folderId of ['999', '211'])
    await expect(linesOf({ schemaId: '100', folderId }, 'folders')).rejects.toMatchObject({
      code: 'ERR-FOLDER-NOT-FOUND',
    })
})

test('a value that no row may hold is refused, and the error names the entry', async () => {
  const { client } = stage.staff
  const long = async (id: string, movement: object) => {
    await addEntry(client, otherTenant, { id }, [{ id: `${id}1`, ...movement }])
    const refused = linesOf(otherTenant, 'movements', [id, id])
    await expect(refused).rejects.toBeInstanceOf(UnsupportedByFormat)
    await expect(refused).rejects.toThrow(`entry ${id}`)
  }
  await long('910000', { description: 'x'.repeat(16 * 1024 * 1024) })
  await long('920000', { debit: 10n ** 18n })
})
