/** Finding one entry costs as little in a large folder as in a small one. */
import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { createPool, inTenant } from '../../src/db/pool.ts'
import { readDictionaryOfEntry } from '../../src/ledger/dictionary.sql.ts'
import { type EntryName, readNamedEntry } from '../../src/ledger/named-entry.sql.ts'
import { forTests } from '../support/for-tests.ts'
import { addEntry, fillFolders } from '../support/ledgers/ledger.ts'
import { createTenants, folders } from '../support/ledgers/tenants.ts'
import { ask, createTestDatabase } from '../support/servers/database.ts'

const database = forTests(createTestDatabase)
const staff = forTests(() => createTenants(database.ownerUrl))
const pool = forTests(() => createPool(database.serviceUrl, { max: 1, applicationName: 'test' }))

const { schemaId, folderId } = folders.first

beforeAll(async () => {
  const { first, sameFirm } = folders
  await fillFolders(staff, { first, sameFirm })
  await fillFurther(staff.client)
})

/** 20,000 entries of two movements, every tenth sent by a partner, and 5,000 accounts. */
async function fillFurther(client: pg.Client): Promise<void> {
  await client.query(
    `insert into grandlivre.accounts (schema_id, folder_id, id, number, name)
       select ${schemaId}, ${folderId}, 1000 + n, '4' || lpad(n::text, 6, '0'), 'Client ' || n
       from generate_series(1, 5000) n;
     insert into grandlivre.entries (schema_id, folder_id, id, exercice_id, journal_id, date, accounted_at, created_at,
         validated_at, source, currency, partner_metadata)
       select ${schemaId}, ${folderId}, 100000 + n, 12, 31, '2024-09-01', '2024-09-01', now(), '2024-09-02', 'E', 'EUR',
         case when n % 10 = 0 then jsonb_build_object('partnerId', 'sent-' || n, 'json', null) end
       from generate_series(1, 20000) n;
     analyze grandlivre.accounts, grandlivre.entries`,
  )
  // A session of its own: this one has planned the checks of foreign keys for tables that were nearly empty.
  await ask(
    database.ownerUrl,
    `insert into grandlivre.movements (schema_id, folder_id, exercice_id, entry_id, id, account_id, description,
         invoice_number, debit, credit)
       select ${schemaId}, ${folderId}, 12, 100000 + n, 200000 + 2 * n + k, 1001 + (n * 7 + k) % 5000, 'Vente',
         'FA-' || n, 100 * k, 100 * (1 - k)
       from generate_series(1, 20000) n, generate_series(0, 1) k;
     analyze grandlivre.movements`,
  )
}

/** Rows of tables and entries of indexes that the transaction has read so far. */
async function rowsRead(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ read: string }>(
    `select (select sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) from pg_stat_xact_user_tables
             where schemaname = 'grandlivre') as read`,
  )
  return Number(rows[0]!.read)
}

const named = (name: string): EntryName => ({ schemaId, folderId, name, draft: false })

test.each([
  ['its id', '110000'],
  ['an invoice number', 'FA-10000'],
  ['a partner id', 'sent-10000'],
])(
  'an entry is found by %s with the rows that it refers to, and fewer than 100 rows are read',
  async (_what, name) => {
    await inTenant(pool, schemaId, async (client) => {
      // After five runs PostgreSQL may plan a statement once for all values.
      for (let run = 0; run < 8; run++) {
        const before = await rowsRead(client)
        const entry = await readNamedEntry(client, named(name), 'Europe/Paris')
        expect(entry).toMatchObject({ id: '110000', exerciceId: '12' })
        const dictionary = await readDictionaryOfEntry(client, { schemaId, folderId }, entry)
        expect(dictionary.accounts).toHaveLength(2)
        expect(dictionary.journals.map(({ id }) => id)).toEqual(['31'])
        expect((await rowsRead(client)) - before, `run ${run}`).toBeLessThan(100)
      }
    })
  },
)

test('the rows an entry refers to are the same as in an export of the whole folder', async () => {
  await addEntry(
    staff.client,
    { schemaId, folderId },
    { id: '700000', source: 'API', thirdPartyId: await partnerId() },
    [
      { id: '700000', accountId: '105', paymentId: '52', shares: [71n, 1n, 1n, 75n, 1n, 1n] },
      { id: '700001', accountId: '101', paymentId: null, shares: [72n, 1n, 1n] },
    ],
  )
  const found = await inTenant(pool, schemaId, (client) =>
    readDictionaryOfEntry(client, { schemaId, folderId }, { id: '700000', exerciceId: '12' }),
  )
  const ids = Object.entries(found).map(([table, rows]) => [
    table,
    rows.map(({ id }: { id: string }) => id).toSorted(),
  ])
  expect(Object.fromEntries(ids)).toEqual({
    journals: ['31'],
    accounts: ['101', '105'],
    payments: ['52'],
    axes: ['61', '62'],
    sections: ['71', '72', '75'],
    thirdParties: [await partnerId()],
  })
})

test('texts too long for an index are stored; such an invoice number is found, such a partner id is not', async () => {
  // Compression does not make them fit.
  const [invoiceNumber, partnerId] = [1, 2].map(() => randomBytes(4_000).toString('base64')) as [
    string,
    string,
  ]
  const partnerMetadata = { partnerId, json: null }
  await addEntry(staff.client, { schemaId, folderId }, { id: '710000', partnerMetadata }, [
    { id: '710000', invoiceNumber },
  ])
  await inTenant(pool, schemaId, async (client) => {
    const missing = { code: 'ERR-ENTRY-NOT-FOUND' }
    await expect(readNamedEntry(client, named(partnerId), 'Europe/Paris')).rejects.toMatchObject(missing)
    for (const name of ['710000', invoiceNumber])
      expect(await readNamedEntry(client, named(name), 'Europe/Paris')).toMatchObject({ id: '710000' })
    await expect(
      readNamedEntry(client, named(`${invoiceNumber.slice(0, -1)}!`), 'Europe/Paris'),
    ).rejects.toMatchObject(missing)
  })
})

test('invoice numbers that differ only in their last character, or have only one, are distinct', async () => {
  // All numbers of a group have the same key in the index. No entry has the last number of a group.
  const groups = [
    ['A', 'B', 'é', 'C'],
    ['N°1', 'N°2', 'N° ', 'N°'],
    ['N°1é', 'N°1è', 'N°1É'],
  ]
  let id = 720_000
  await inTenant(pool, schemaId, async (client) => {
    for (const group of groups) {
      const ids = new Map<string, string>()
      for (const invoiceNumber of group.slice(0, -1)) {
        ids.set(invoiceNumber, String(id))
        await addEntry(staff.client, { schemaId, folderId }, { id: String(id) }, [
          { id: String(id), invoiceNumber },
        ])
        id += 1
      }
      for (const [name, of] of ids)
        expect(await readNamedEntry(client, named(name), 'Europe/Paris')).toMatchObject({ id: of })
      await expect(readNamedEntry(client, named(group.at(-1)!), 'Europe/Paris')).rejects.toMatchObject({
        code: 'ERR-ENTRY-NOT-FOUND',
      })
    }
  })
})

async function partnerId(): Promise<string> {
  const { rows } = await staff.client.query<{ id: string }>(
    `select id from grandlivre.third_parties where code = 'PARTNER'`,
  )
  return rows[0]!.id
}
