/** The bytes of a CSV file, compared with what SQL reads, and with the JSON file of the same folder. */
import { beforeAll, describe, expect, test } from 'vitest'
import { flatColumns } from '../../../src/formats/flat/columns.ts'
import type { FolderKey } from '../../../src/formats/rows.ts'
import { type Chosen, renderedFile } from '../../support/fixtures/rendered-file.ts'
import { forTests } from '../../support/for-tests.ts'
import { fillHostileLedger } from '../../support/ledgers/hostile-ledger.ts'
import { addEntry } from '../../support/ledgers/ledger.ts'
import { folders } from '../../support/ledgers/tenants.ts'
import { parseCsv } from '../../support/plain/plain-csv.ts'
import { flatNames, readPlainFlat } from '../../support/plain/plain-flat.ts'
import { setMadStage } from '../../support/stages/mad-stage.ts'

const { first, sameFirm, otherFirm, otherTenant } = folders
const stage = forTests(setMadStage)

beforeAll(async () => {
  await fillHostileLedger(stage.staff.client, sameFirm)
})

async function csvOf(folder: FolderKey, chosen: Chosen = {}): Promise<string> {
  return (await renderedFile(stage.pool, folder, 'CSV', chosen)).bytes.toString('utf8')
}

async function rowsOf(folder: FolderKey, chosen: Chosen = {}): Promise<(string | null)[][]> {
  const [header, ...rows] = parseCsv(await csvOf(folder, chosen))
  expect(header!.map(({ text }) => text)).toEqual(flatNames)
  return rows.map((row) => row.map(({ text }) => text))
}

const record = (row: (string | null)[]) =>
  Object.fromEntries(row.map((text, i) => [flatNames[i]!, text])) as Record<string, string | null>

const optional = (value: unknown) => (value === null || value === undefined ? null : String(value))

const links = (files: Record<string, { value: string }>) =>
  Object.fromEntries(Object.entries(files).map(([name, { value }]) => [name, value]))

/** The row that a movement of the JSON file must have. That file does not contain `exercice_id` and `ecriture_num`. */
// biome-ignore lint/suspicious/noExplicitAny: parsed items
function rowOfItem(entry: any, movement: any, journalTypes: Map<string, string>) {
  const more = entry.additionalProducerProperties
  return {
    entry_id: entry.producerId,
    entry_date: entry.date,
    entry_due_date: entry.dueDate,
    accounted_at: more.accountedAt,
    created_at: new Date(more.createdAt * 1000).toISOString().replace('.000', ''),
    validated_at: more.validationDate,
    draft: String(more.validationDate === null),
    journal_id: entry.journal.producerId,
    journal_code: entry.journal.customerReferenceCode,
    journal_name: entry.journal.name,
    journal_type: journalTypes.get(entry.journal.producerId),
    source: more.source.name,
    currency: entry.currency.code,
    currency_rate: optional(entry.currency.rate),
    entry_comment: more.comment,
    piece_date: entry.date,
    movement_id: movement.producerId,
    account_id: movement.account.producerId,
    account_number: movement.account.number,
    account_name: movement.account.name,
    auxiliary_number: null,
    auxiliary_name: null,
    description: movement.description,
    due_date: movement.dueDate,
    free_number: movement.freeNumber,
    invoice_number: movement.invoiceNumber,
    debit: String(movement.value.debit),
    credit: String(movement.value.credit),
    payment_code: optional(movement.payment?.code),
    lettering_state: movement.lettering.state,
    lettering_code: movement.lettering.value?.replace(/^\*/, '') ?? null,
    payment_id: optional(movement.payment?.producerId),
    third_party_code: optional(more.source.thirdParty?.code),
    third_party_name: optional(more.source.thirdParty?.name),
    partner_metadata: more.partnerMetadata && JSON.stringify(more.partnerMetadata),
  }
}

describe('a file', () => {
  test.each(Object.entries({ first, sameFirm, otherFirm, otherTenant }))(
    'of folder %s has every movement of that folder, field by field as SQL prints them',
    async (_, folder) => {
      const expected = await readPlainFlat(stage.staff.client, folder)
      expect(expected.length).toBeGreaterThan(50)
      expect(await rowsOf(folder)).toEqual(expected)
    },
  )

  test('gives the same values for each movement as the JSON file', async () => {
    const { data } = JSON.parse((await stage.file(first)).text)
    const types = new Map<string, string>(
      // biome-ignore lint/suspicious/noExplicitAny: parsed items
      data.journals.map((each: any) => [each.producerId, each.additionalProducerProperties.type]),
    )
    // biome-ignore lint/suspicious/noExplicitAny: parsed items
    const items: any[] = data.entries.flatMap((entry: any) =>
      // biome-ignore lint/suspicious/noExplicitAny: parsed items
      entry.movements.map((movement: any) => ({ entry, movement })),
    )
    const rows = new Map((await rowsOf(first)).map((row) => [record(row)['movement_id'], record(row)]))
    expect([rows.size, items.length > 100]).toEqual([items.length, true])
    for (const { entry, movement } of items) {
      const {
        analytics,
        attachments,
        exercice_id: _,
        ecriture_num: number,
        ...row
      } = rows.get(movement.producerId)!
      // Validated entries have a number.
      expect(number === null).toBe(row.validated_at === null)
      expect(row).toEqual(rowOfItem(entry, movement, types))
      expect(JSON.parse(analytics ?? '[]')).toEqual(
        // biome-ignore lint/suspicious/noExplicitAny: parsed items
        movement.analytics.flatMap(({ code: axis_code, sections }: any) =>
          // biome-ignore lint/suspicious/noExplicitAny: parsed items
          sections.map(({ code, amount, rate }: any) => ({ axis_code, section_code: code, amount, rate })),
        ),
      )
      const files = { entry: {}, movement: {}, ...JSON.parse(attachments ?? '{}') }
      expect(files).toEqual({ entry: links(entry.attachments), movement: links(movement.attachments) })
    }
  })

  test('has the declared columns, and quotes around every text and nothing else', async () => {
    const [header, ...rows] = parseCsv(await csvOf(first))
    expect(flatColumns.map(({ name }) => name)).toEqual(flatNames)
    expect(header!.every(({ isQuoted }) => !isQuoted)).toBe(true)
    const codes = ['journal_type', 'source', 'currency', 'payment_code', 'lettering_state']
    for (const [i, { name, type }] of flatColumns.entries()) {
      const fields = rows.map((row) => row[i]!).filter(({ text }) => text !== null)
      const isText = (type === 'VARCHAR' || type.startsWith('STRUCT')) && !codes.includes(name)
      expect(new Set(fields.map(({ isQuoted }) => isQuoted)), name).toEqual(
        new Set(fields.length > 0 ? [isText] : []),
      )
    }
  })
})

describe('a selection', () => {
  const selections: [string, Chosen, string][] = [
    ['a year', { exerciceId: '12' }, 'e.exercice_id = 12'],
    [
      'a period',
      { period: { start: '2023-09-01', end: '2025-01-31' } },
      `e.date between '2023-09-01' and '2025-01-31'`,
    ],
    [
      'journals of a year',
      { exerciceId: '13', journalIds: ['31', '33', '40'] },
      'e.exercice_id = 13 and e.journal_id in (31, 33, 40)',
    ],
  ]
  test.each(selections)('of %s has exactly its rows', async (_, chosen, where) => {
    const expected = await readPlainFlat(stage.staff.client, first, where)
    expect(expected.length).toBeGreaterThan(3)
    expect(await rowsOf(first, chosen)).toEqual(expected)
  })

  test('of no movements has only the header', async () => {
    expect(await csvOf(first, { period: { start: '1990-01-01', end: '1990-12-31' } })).toBe(
      `${flatNames.join(',')}\r\n`,
    )
  })
})

test('rows larger than a chunk, at the end of one year and the start of the next, are kept apart', async () => {
  const { client } = stage.staff
  await addEntry(client, first, { id: '900000' }, [{ id: '900001', description: 'x'.repeat(900_000) }])
  const next = { exerciceId: '13', date: '2025-09-01', accountedAt: '2025-09-01' }
  await addEntry(client, first, { id: '900010', ...next }, [
    { id: '900011', description: 'y'.repeat(500_000) },
  ])
  const written = (await rowsOf(first)).slice(-2).map((row) => record(row)['description']!)
  expect(written.map((text) => [...new Set(text)])).toEqual([['x'], ['y']])
  expect(await rowsOf(first)).toEqual(await readPlainFlat(client, first))
})

test('fields that a FEC filed come first from the movement, then from its entry, then from its account or date', async () => {
  const { client } = stage.staff
  const ofFolder = `schema_id = ${otherTenant.schemaId} and folder_id = ${otherTenant.folderId}`
  await client.query(`update grandlivre.accounts set filed_number = '401000', filed_name = 'Fournisseurs',
    auxiliary_number = 'alpha "1"', auxiliary_name = 'Alpha, SA' where ${ofFolder} and id = 102`)
  await client.query(`alter table grandlivre.entries disable trigger refuse_other_number;
    update grandlivre.entries set number = 'A"' || id where ${ofFolder} and id % 2 = 0;
    alter table grandlivre.entries enable trigger refuse_other_number`)
  await client.query(`update grandlivre.entries set filed = case id % 5
      when 0 then '{"PieceDate":"20240229"}'::json when 1 then '{"PieceDate":"","CompAuxNum":"E-1"}'
      else '{"ValidDate":"","CompAuxLib":""}' end where ${ofFolder} and id % 4 = 0`)
  await client.query(`update grandlivre.movements set filed = case id % 5
      when 0 then '{"PieceDate":"20231231","CompAuxNum":"\\"line\\""}'::json
      when 1 then '{"CompAuxNum":"","CompAuxLib":"of the line"}'
      else '{"PieceDate":""}' end where ${ofFolder} and id % 7 = 0`)
  const rows = await rowsOf(otherTenant)
  expect(rows).toEqual(await readPlainFlat(client, otherTenant))
  const found = (name: string) => new Set(rows.map((row) => record(row)[name]))
  for (const date of ['2024-02-29', '2023-12-31', null]) expect(found('piece_date')).toContain(date)
  for (const number of ['alpha "1"', 'E-1', '"line"', null])
    expect(found('auxiliary_number')).toContain(number)
  for (const name of ['Alpha, SA', 'of the line', null]) expect(found('auxiliary_name')).toContain(name)
})
