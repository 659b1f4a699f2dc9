/** One entry by the name that a partner knows: its id, an invoice number, or the partner's own id. */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { createOwnerPool } from '../../../src/db/pool.ts'
import { importFec } from '../../../src/ledger/fec/import-fec.ts'
import { type Download, download, madUrl } from '../../support/download.ts'
import { readFixture } from '../../support/fixtures/fixture-files.ts'
import { forTests } from '../../support/for-tests.ts'
import { addToFolder } from '../../support/ledgers/full-ledger.ts'
import { addEntry } from '../../support/ledgers/ledger.ts'
import { credentials, folders } from '../../support/ledgers/tenants.ts'
import { readPlainEntries } from '../../support/plain/plain-mad.ts'
import { setExportStage } from '../../support/stages/export-stage.ts'

const stage = forTests(setExportStage)

beforeAll(async () => {
  await addToFolder(stage.staff.client, folders.first)
})

const { schemaId, folderId } = folders.first
const folder = { schemaId, folderId }

const ask = (
  id: string | string[] | undefined,
  query: Record<string, string> = {},
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<Download> =>
  download(madUrl(stage.service.url, 'entry', { id, ...query }), { ...stage.company, ...headers }, method)

async function outcome(...request: Parameters<typeof ask>): Promise<unknown[]> {
  const { status, json } = await ask(...request)
  return [status, json.error?.code ?? json.producerId]
}

const ambiguous = [409, 'ERR-AMBIGUOUS-ENTRY']
const unknown = [404, 'ERR-ENTRY-NOT-FOUND']

describe('an entry', () => {
  test('is the same line as on the route of entries, validated or draft, with or without movements', async () => {
    const lines = { ...stage.company, Accept: 'application/x-ndjson' }
    let count = 0
    for (const draft of [undefined, '']) {
      const url = madUrl(stage.service.url, 'entries', { idExercice: '12', draft })
      const { text } = await download(url, lines)
      for (const line of text.match(/[^\n]*\n/g) ?? []) {
        expect((await ask(JSON.parse(line).producerId, {}, lines)).text).toBe(line)
        count++
      }
    }
    expect(count).toBeGreaterThan(50)
  })

  test('can be found by the id in the notification of its import', async () => {
    const file = join(await mkdtemp(join(tmpdir(), 'grandlivre-entry-')), '123456789FEC20231231.txt')
    await writeFile(file, readFixture('ledger.fec.txt'))
    const pool = createOwnerPool(stage.database.ownerUrl, { max: 2, applicationName: 'test' })
    const imported = await importFec(pool, { file })
    await pool.end()
    const { rows: events } = await stage.staff.client.query(
      `select data ->> 'id' as id, scope ->> 'accountingFolderId' as folder from grandlivre.events
       where name = 'accountingLineEntry' and folder_id = $1 order by id`,
      [imported.folderId],
    )
    const { rows } = await stage.staff.client.query(
      'select schema_id as "schemaId", firm_id as "firmId", id as "folderId" from grandlivre.folders where id = $1',
      [imported.folderId],
    )
    const firm = credentials(
      await stage.staff.token('PARTNER', 'firm', rows[0]),
      stage.firm['X-Third-Party-Secret']!,
    )
    expect(events.length).toBeGreaterThan(5)
    for (const event of events) {
      const { json } = await ask(event.id, {}, { ...firm, 'society-id': event.folder })
      expect(json.producerId).toBe(event.id)
    }
  })

  test('is shown with the accounts of its own folder', async () => {
    for (const other of [folders.sameFirm, folders.first]) {
      const [entry] = await readPlainEntries(stage.staff.client, other, `e.id = 30`)
      const headers = { ...stage.firm, 'society-id': other.folderId }
      expect((await ask('30', {}, headers)).text).toBe(JSON.stringify(entry))
    }
  })

  test('is not found in another folder, firm or tenant', async () => {
    for (const [label, other] of Object.entries(folders).filter(([name]) => name !== 'first')) {
      const theirs = { schemaId: other.schemaId, folderId: other.folderId }
      await addEntry(
        stage.staff.client,
        theirs,
        { id: '650001', partnerMetadata: { partnerId: 'theirs', json: null } },
        [{ id: '650001', invoiceNumber: 'THEIRS' }],
      )
      for (const id of ['650001', 'theirs', 'THEIRS']) expect(await outcome(id), label).toEqual(unknown)
    }
    const headers = { ...stage.firm, 'society-id': folders.sameFirm.folderId }
    for (const id of ['650001', 'theirs', 'THEIRS'])
      expect((await ask(id, {}, headers)).json.producerId).toBe('650001')
  })
})

/** The entries that a condition on e (entries) selects, ascending. */
async function idsOf(condition: string, value: string): Promise<string[]> {
  const { rows } = await stage.staff.client.query<{ id: string }>(
    `select e.id from grandlivre.entries e where e.schema_id = 100 and e.folder_id = 111 and ${condition} order by e.id`,
    [value],
  )
  return rows.map(({ id }) => id)
}

describe('a name', () => {
  test('is an invoice number or, if no entry has it, a partner id; it must belong to one entry only', async () => {
    // Some invoice numbers are also used in a second entry, some only in drafts.
    await stage.staff.client.query(
      `update grandlivre.movements set invoice_number = 'F-' || (id % 100)
       where schema_id = 100 and folder_id = 111 and id % 3 = 0 and invoice_number <> ''`,
    )
    const { rows } = await stage.staff.client.query<{ name: string }>(
      `select distinct invoice_number as name from grandlivre.movements
       where schema_id = 100 and folder_id = 111 and invoice_number <> '' and id % 10 = 0
       union select partner_metadata ->> 'partnerId' from grandlivre.entries
       where schema_id = 100 and folder_id = 111 and partner_metadata is not null`,
    )
    const seen = new Set<unknown>()
    for (const { name } of rows)
      for (const draft of [false, true]) {
        const isDraft = `e.validated_at is ${draft ? '' : 'not '}null`
        const byInvoice = await idsOf(
          `${isDraft} and e.id in (select m.entry_id from grandlivre.movements m
             where m.schema_id = 100 and m.folder_id = 111 and m.invoice_number = $1)`,
          name,
        )
        const ids =
          byInvoice.length > 0
            ? byInvoice
            : await idsOf(`${isDraft} and e.partner_metadata ->> 'partnerId' = $1`, name)
        const { status, json } = await ask(name, draft ? { draft: '' } : {})
        if (ids.length === 1) expect([status, json.producerId], name).toEqual([200, ids[0]])
        else {
          expect([status, json.error.code], name).toEqual(ids.length === 0 ? unknown : ambiguous)
          expect(json.error.details.producerIds, name).toEqual(ids.length === 0 ? undefined : ids)
        }
        seen.add([draft, byInvoice.length > 0, Math.min(ids.length, 2)].join())
      }
    // Both kinds of names, for drafts and others, with one entry and none, and the same invoice number twice.
    for (const met of ['false,true,1', 'false,true,2', 'true,true,1', 'false,false,1', 'false,false,0'])
      expect([...seen]).toContain(met)
  })

  test('is looked up as an id first, then as an invoice number, then as a partner id', async () => {
    const add = (id: string, invoiceNumber: string, partnerId: string) =>
      addEntry(stage.staff.client, folder, { id, partnerMetadata: { partnerId, json: {} } }, [
        { id, invoiceNumber },
      ])
    await add('660001', '660002', '660003')
    await add('660002', '660003', '660001')
    expect(await outcome('660001')).toEqual([200, '660001'])
    expect(await outcome('660002')).toEqual([200, '660002'])
    expect(await outcome('660003')).toEqual([200, '660002'])
    await stage.staff.client.query(
      `update grandlivre.movements set invoice_number = '' where schema_id = 100 and id = 660002`,
    )
    expect(await outcome('660003')).toEqual([200, '660001'])
  })

  test('is compared exactly, including letter case, blanks and leading zeros', async () => {
    const names = [
      'FA 1',
      'fa 1',
      'FA 1 ',
      '000660013',
      'É"\\\'%',
      '😀',
      'a+b&c=d',
      '\u0001',
      'x'.repeat(255),
    ]
    for (const [i, invoiceNumber] of names.entries())
      await addEntry(stage.staff.client, folder, { id: String(660011 + i) }, [
        { id: String(660011 + i), invoiceNumber },
      ])
    for (const [i, name] of names.entries()) expect(await outcome(name)).toEqual([200, String(660011 + i)])
    expect(await outcome('660013')).toEqual([200, '660013'])
    for (const name of ['Fa 1', 'FA  1', 'FA', '00660013', '0660014', 'x'.repeat(254)])
      expect(await outcome(name), name).toEqual(unknown)
  })

  test('of a draft is found with the parameter draft; its id is found without it too', async () => {
    const draft = { validatedAt: null, partnerMetadata: { partnerId: 'sent-1', json: null } }
    await addEntry(stage.staff.client, folder, { id: '660031', ...draft }, [
      { id: '660031', invoiceNumber: 'BROUILLARD' },
    ])
    for (const name of ['660031', 'BROUILLARD', 'sent-1'])
      for (const given of ['', 'true', 'x'])
        expect(await outcome(name, { draft: given })).toEqual([200, '660031'])
    for (const given of [{}, { draft: 'false' }, { draft: '0' }] as Record<string, string>[]) {
      expect(await outcome('660031', given)).toEqual([200, '660031'])
      for (const name of ['BROUILLARD', 'sent-1']) expect(await outcome(name, given)).toEqual(unknown)
    }
    await stage.staff.client.query(
      `update grandlivre.entries set validated_at = date where schema_id = 100 and id = 660031`,
    )
    for (const name of ['660031', 'BROUILLARD', 'sent-1']) {
      expect(await outcome(name)).toEqual([200, '660031'])
      expect(await outcome(name, { draft: '' })).toEqual(unknown)
    }
  })

  test('of several entries is answered with 409 and the first hundred of their ids', async () => {
    const add = async (from: number, count: number, partnerId: string, invoiceNumber: string) => {
      for (let id = from; id < from + count; id++)
        await addEntry(
          stage.staff.client,
          folder,
          { id: String(id), partnerMetadata: { partnerId, json: null } },
          // Each entry has two movements, but counts once.
          [1, 2].map((n) => ({ id: String(2 * id + n), invoiceNumber })),
        )
    }
    await add(670_000, 100, 'batch', 'LOT')
    const ids = Array.from({ length: 100 }, (_, i) => String(670_000 + i))
    for (const name of ['LOT', 'batch']) {
      const { status, json } = await ask(name)
      expect([status, json.error.code, json.error.details.producerIds]).toEqual([...ambiguous, ids])
      expect(json.error.message).toMatch(/^100 entries /)
    }
    await add(670_100, 1, 'batch', 'LOT')
    const { json } = await ask('LOT')
    expect(json.error.details.producerIds).toEqual(ids)
    expect(json.error.message).toMatch(/^More than 100 entries /)
    const { status, bytes } = await ask('LOT', {}, {}, 'HEAD')
    expect([status, bytes.length]).toEqual([409, 0])
  })
})

describe('a request for an entry', () => {
  test.each([
    ['no id', undefined],
    ['an empty id', ''],
    ['an id of 256 characters', 'x'.repeat(256)],
    ['an id with a NUL', 'a\0b'],
    ['two ids', ['3', '12']],
  ])('is refused for %s', async (_what, id) => {
    const { status, json } = await ask(id)
    expect([status, json.error.code]).toEqual([400, 'ERR-VALIDATION'])
    expect(json.error.details.issues).toMatchObject([{ parameter: 'id' }])
  })

  test('is answered with 404 for digits that no entry has, however many', async () => {
    for (let digits = 1; digits <= 19; digits++) {
      expect(await outcome('9'.repeat(digits)), String(digits)).toEqual(unknown)
      expect(await outcome('0'.repeat(digits)), String(digits)).toEqual(unknown)
    }
    for (const name of [String(2 ** 53), '-3', '3.0', ' 3', '3 ', '٣', '1e1', "' or 1=1", '%'])
      expect(await outcome(name), name).toEqual(unknown)
  })

  test('gets an ETag of its own, but none if there is no entry', async () => {
    const { etag } = (await ask('30')).headers
    for (const other of await Promise.all([ask('39'), ask('30', { draft: '' })]))
      expect(other.headers.etag).not.toBe(etag)
    expect(await outcome('nothing', {}, { 'If-None-Match': '*' })).toEqual(unknown)
    expect((await ask('nothing', {}, {}, 'HEAD')).status).toBe(404)
  })
})
